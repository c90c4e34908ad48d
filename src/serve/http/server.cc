#include "serve/http/server.h"

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "serve/http/connection.h"
#include "serve/http/target.h"

namespace strata::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Acceptor = asio::basic_socket_acceptor<tcp, Executor>;
using ErrorCode = boost::system::error_code;

constexpr auto kAcceptPause = std::chrono::milliseconds(100);
constexpr auto kLastWords = std::chrono::seconds(1);

HttpResponse crowd_response() {
  return overload_response("too_many_connections", "too many connections are open");
}

Status listen_error(const ServerOptions& options, const ErrorCode& error) {
  const auto where = fmt::format("{} port {}", options.address, options.port);
  if (error == asio::error::address_in_use)
    return io_error(
        "{} is in use: another program, perhaps another server of this kind, listens "
        "there; stop it, or choose another port",
        where);
  if (error == asio::error::access_denied)
    return io_error("{} needs special rights; choose a port of 1024 or more", where);
  if (error == boost::system::errc::address_not_available)
    return invalid_argument(
        "{} is no address of this machine; \"127.0.0.1\" serves this machine "
        "alone, \"::\" every network it is in",
        options.address);
  return io_error("cannot listen at {}: {}", where, error.message());
}

// The addresses to listen at: the one that is given, or all that a name stands for.
Result<std::vector<asio::ip::address>> addresses_of(const std::string& text, asio::io_context& io) {
  ErrorCode error;
  if (const auto address = asio::ip::make_address(text, error); !error) return std::vector{address};
  std::vector<asio::ip::address> addresses;
  asio::ip::basic_resolver<tcp, Executor> resolver(io.get_executor());
  for (const auto& entry : resolver.resolve(text, "", tcp::resolver::passive, error))
    if (std::ranges::count(addresses, entry.endpoint().address()) == 0)
      addresses.push_back(entry.endpoint().address());
  if (error || addresses.empty())
    return invalid_argument(
        "cannot listen at \"{}\": it is neither an IP address nor a name that "
        "this machine can look up",
        text);
  return addresses;
}

Status listen(Acceptor& acceptor, const tcp::endpoint& endpoint, const ServerOptions& options) {
  ErrorCode error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.protocol() == tcp::v6())
    acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error ? listen_error(options, error) : Status();
}

}  // namespace

class Server::Impl {
 public:
  Impl(ServerOptions options, Handler handler) : state_(std::move(options), std::move(handler)) {}
  ~Impl() { (void)stop(std::chrono::milliseconds(0)); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start();
  std::uint16_t port() const { return port_; }
  ServerStats stats() const;
  StopReport stop(std::chrono::milliseconds grace);

 private:
  asio::awaitable<void, Executor> accept_loop(Acceptor& acceptor);
  void admit(Socket socket);
  void close_longest_idle();
  void turn_away(Socket& socket);
  void retire();
  void for_all(void (Connection::*call)());

  ServerState state_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::uint16_t port_ = 0;
  std::thread thread_;

  std::mutex mutex_;
  std::condition_variable changed_;
  bool drained_ = false;  // no request is under way
};

Status Server::Impl::start() {
  asio::io_context& io = state_.loop->io();
  STRATA_ASSIGN(const auto addresses, addresses_of(state_.options.address, io));
  port_ = state_.options.port;
  Status failure;
  for (const asio::ip::address& address : addresses) {
    auto acceptor = std::make_unique<Acceptor>(io);
    Status status = listen(*acceptor, tcp::endpoint(address, port_), state_.options);
    if (!status.ok()) {
      // A name may stand for an address of a protocol that is switched off.
      if (address != addresses.front() && status.code() == StatusCode::kInvalidArgument) continue;
      return status;
    }
    port_ = acceptor->local_endpoint().port();
    acceptors_.push_back(std::move(acceptor));
  }
  for (const auto& acceptor : acceptors_)
    asio::co_spawn(
        io, [this, &acceptor] { return accept_loop(*acceptor); }, [](const std::exception_ptr&) {});
  thread_ = std::thread([loop = state_.loop] { loop->run(); });
  return Status();
}

asio::awaitable<void, Executor> Server::Impl::accept_loop(Acceptor& acceptor) {
  Timer pause(acceptor.get_executor());
  while (acceptor.is_open()) {
    ErrorCode error;
    Socket socket = co_await acceptor.async_accept(asio::redirect_error(kAwait, error));
    if (!error) {
      admit(std::move(socket));
    } else if (acceptor.is_open()) {
      // The process has no file descriptor left; connections that end will free some.
      pause.expires_after(kAcceptPause);
      co_await pause.async_wait(asio::redirect_error(kAwait, error));
    }
  }
}

void Server::Impl::admit(Socket socket) {
  const auto is_full = [&] {
    return state_.open.size() - state_.refusing >= state_.options.max_connections;
  };
  if (is_full()) close_longest_idle();
  const bool full = is_full();
  if (full && state_.refusing >= kMostRefusing) return turn_away(socket);
  const auto connection = std::make_shared<Connection>(state_, std::move(socket));
  state_.open.insert(connection);
  state_.connections = state_.open.size();
  if (full) return connection->start_refusing(crowd_response());
  connection->start();
}

// Makes room for another. Clients know that a server may close connections that they do not use;
// and it does not take as long to send a head.
void Server::Impl::close_longest_idle() {
  for (const auto unused : {&Connection::idle_since, &Connection::begun_since}) {
    Clock::time_point since = Clock::now() - state_.options.spare_idle;
    std::shared_ptr<Connection> longest;
    for (const auto& connection : state_.open) {
      if (!(*connection.*unused)(since)) continue;
      since = connection->phase_start();
      longest = connection;
    }
    if (longest) return longest->drop();
  }
}

// As far as the socket takes it at once, which holds nothing yet.
void Server::Impl::turn_away(Socket& socket) {
  ++state_.refused;
  const HttpResponse refusal = crowd_response();
  std::string text = fmt::format("HTTP/1.1 {} Service Unavailable\r\nContent-Type: {}\r\n",
                                 refusal.status, refusal.content_type);
  for (const auto& [name, value] : refusal.headers) text += fmt::format("{}: {}\r\n", name, value);
  text += fmt::format("Content-Length: {}\r\nConnection: close\r\n\r\n{}", refusal.body.size(),
                      refusal.body);
  ErrorCode ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(text), ignored);
  socket.shutdown(Socket::shutdown_send, ignored);
  // Closing a socket with unread bytes resets it.
  socket.read_some(asio::buffer(state_.received), ignored);
}

void Server::Impl::for_all(void (Connection::*call)()) {
  const std::vector<std::shared_ptr<Connection>> open(state_.open.begin(), state_.open.end());
  for (const auto& connection : open) (*connection.*call)();
}

void Server::Impl::retire() {
  for (const auto& acceptor : acceptors_) acceptor->close();
  state_.on_drained = [this] {
    const std::lock_guard lock(mutex_);
    drained_ = true;
    changed_.notify_all();
  };
  state_.stopping = true;
  for_all(&Connection::retire);
  state_.note_if_drained();
}

StopReport Server::Impl::stop(std::chrono::milliseconds grace) {
  if (!thread_.joinable()) return {};
  asio::io_context& io = state_.loop->io();
  const auto wait = [this](std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return std::exchange(drained_, false); });
  };
  auto more_to_come = asio::make_work_guard(io);
  asio::post(io, [this] { retire(); });
  wait(grace);
  asio::post(io, [this] {
    for_all(&Connection::cut);
    state_.note_if_drained();
  });
  wait(kLastWords);
  asio::post(io, [this] { for_all(&Connection::drop); });
  more_to_come.reset();
  thread_.join();
  state_.pool.stop();
  state_.questions.stop();
  return state_.ended;
}

ServerStats Server::Impl::stats() const {
  ServerStats stats;
  stats.connections = state_.connections;
  stats.queued = state_.pool.queued() + state_.questions.queued();
  stats.requests = state_.requests;
  stats.refused = state_.refused;
  stats.disconnected = state_.disconnected;
  stats.slow = state_.slow;
  return stats;
}

Result<std::unique_ptr<Server>> Server::start(ServerOptions options, Handler handler) {
  for (const std::string& host : options.allowed_hosts)
    if (host != "*" && !normal_host(host))
      return invalid_argument("the allowed host \"{}\" is neither a name nor an address", host);
  auto impl = std::make_unique<Impl>(std::move(options), std::move(handler));
  STRATA_TRY(impl->start());
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;
std::uint16_t Server::port() const { return impl_->port(); }
ServerStats Server::stats() const { return impl_->stats(); }
StopReport Server::stop(std::chrono::milliseconds grace) { return impl_->stop(grace); }

}  // namespace strata::http
