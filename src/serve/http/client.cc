#include "serve/http/client.h"

#include <array>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/printable.h"
#include "serve/http/response_reader.h"

namespace strata::http {

struct ServerAddress {
  std::string host;  // without brackets
  std::string port = "80";
  std::string authority;
  std::string path;  // without a slash at its end
};

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;
using ClientExecutor = asio::io_context::executor_type;
using ClientSocket = asio::basic_stream_socket<tcp, ClientExecutor>;
using ClientTimer =
    asio::basic_waitable_timer<Client::Clock, asio::wait_traits<Client::Clock>, ClientExecutor>;
constexpr asio::use_awaitable_t<ClientExecutor> kAwaitClient;
constexpr std::size_t kReceiveBytes = 16 * 1024;
constexpr std::size_t kMostTextBytes = 64 * 1024 * 1024;

Result<ServerAddress> parse_address(std::string_view url) {
  constexpr std::string_view kScheme = "http://";
  const std::string shown = printable(url, 200);
  if (!url.starts_with(kScheme))
    return invalid_argument("{}: write http://HOST:PORT; other schemes are not spoken", shown);
  url.remove_prefix(kScheme.size());
  for (const char c : url)
    if (c <= ' ' || c == 0x7f || c == '?' || c == '#' || c == '@')
      return invalid_argument("{} holds more than http://HOST:PORT/PATH", shown);
  ServerAddress address;
  const std::size_t slash = std::min(url.find('/'), url.size());
  address.authority = url.substr(0, slash);
  address.path = url.substr(slash);
  while (address.path.ends_with('/')) address.path.pop_back();
  std::string_view host = address.authority;
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    address.port = host.substr(colon + 1);
    host = host.substr(0, colon);
  }
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  address.host = host;
  std::uint16_t port = 0;
  const char* const end = address.port.data() + address.port.size();
  const auto [stop, error] = std::from_chars(address.port.data(), end, port);
  if (host.empty() || error != std::errc() || stop != end || port == 0)
    return invalid_argument("{} names no host and port", shown);
  return address;
}

}  // namespace

class Client::Impl {
 public:
  Status connect(std::string_view url);
  Id send(ClientRequest request, ClientHandlers handlers);
  void cancel(Id id);
  void at(Clock::time_point time, std::function<void()> work);
  void run();
  void cancel_all();

 private:
  class Stream;

  asio::io_context io_{1};
  ServerAddress address_;
  tcp::endpoint endpoint_;
  Id last_ = 0;
  std::unordered_map<Id, std::shared_ptr<Stream>> streams_;
  std::unordered_set<std::shared_ptr<ClientTimer>> timers_;
};

class Client::Impl::Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(Impl& client, Id id, std::string bytes, ClientHandlers handlers)
      : client_(client),
        id_(id),
        out_(std::move(bytes)),
        handlers_(std::move(handlers)),
        socket_(client.io_.get_executor()),
        timer_(client.io_.get_executor()) {}

  void start(std::chrono::milliseconds timeout) {
    timer_.expires_after(timeout);
    timer_.async_wait([self = shared_from_this()](const ErrorCode& error) {
      if (!error) self->end(Failure::kTimeout);
    });
    asio::co_spawn(
        client_.io_.get_executor(), [self = shared_from_this()] { return self->work(); },
        [self = shared_from_this()](const std::exception_ptr& error) {
          if (error) self->end(Failure::kClosed);
        });
  }

  void close() {
    ended_ = true;
    ErrorCode ignored;
    socket_.close(ignored);
    timer_.cancel();
  }

 private:
  asio::awaitable<void, ClientExecutor> work() {
    ErrorCode error;
    co_await socket_.async_connect(client_.endpoint_, asio::redirect_error(kAwaitClient, error));
    if (error) co_return end(Failure::kConnect);
    ErrorCode ignored;
    socket_.set_option(tcp::no_delay(true), ignored);
    // A server may refuse and close before it has read all: what it says is read none the less.
    co_await asio::async_write(socket_, asio::buffer(out_),
                               asio::redirect_error(kAwaitClient, error));
    std::string body;
    while (!ended_ && reader_.state() < ResponseReader::State::kDone) {
      const std::size_t bytes = co_await socket_.async_read_some(
          asio::buffer(received_), asio::redirect_error(kAwaitClient, error));
      if (ended_) co_return;
      if (error) {
        const bool whole =
            error == asio::error::eof && reader_.end() == ResponseReader::State::kDone;
        co_return end(whole ? Failure::kNone : Failure::kClosed);
      }
      body.clear();
      reader_.feed({received_.data(), bytes}, body);
      if (!body.empty()) handlers_.on_body(reader_.status(), body);
    }
    end(reader_.state() == ResponseReader::State::kDone ? Failure::kNone : Failure::kMalformed);
  }

  void end(Failure failure) {
    if (ended_) return;
    close();
    client_.streams_.erase(id_);
    handlers_.on_end(reader_.status(), failure);
  }

  Impl& client_;
  const Id id_;
  const std::string out_;
  const ClientHandlers handlers_;
  ClientSocket socket_;
  ClientTimer timer_;
  ResponseReader reader_;
  std::array<char, kReceiveBytes> received_;  // what one read brought
  bool ended_ = false;
};

Status Client::Impl::connect(std::string_view url) {
  STRATA_ASSIGN(address_, parse_address(url));
  ErrorCode error;
  asio::ip::basic_resolver<tcp, ClientExecutor> resolver(io_.get_executor());
  const auto found = resolver.resolve(address_.host, address_.port, error);
  ClientSocket socket(io_.get_executor());
  if (!error) endpoint_ = asio::connect(socket, found, error);
  if (error)
    return not_found("{}: no server can be reached ({}); is it running, and is the address right?",
                     printable(url, 200), error.message());
  return {};
}

Client::Id Client::Impl::send(ClientRequest request, ClientHandlers handlers) {
  std::string bytes = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n",
                                  request.method, address_.path, request.path, address_.authority);
  for (const auto& [name, value] : request.headers) bytes += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty())
    bytes += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n",
                         request.body.size());
  bytes += "\r\n" + request.body;
  const auto stream =
      std::make_shared<Stream>(*this, ++last_, std::move(bytes), std::move(handlers));
  streams_[last_] = stream;
  stream->start(request.timeout);
  return last_;
}

void Client::Impl::cancel(Id id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  const auto stream = found->second;
  streams_.erase(found);
  stream->close();
}

void Client::Impl::at(Clock::time_point time, std::function<void()> work) {
  const auto timer = std::make_shared<ClientTimer>(io_.get_executor(), time);
  timers_.insert(timer);
  timer->async_wait([this, timer, work = std::move(work)](const ErrorCode& error) {
    timers_.erase(timer);
    if (!error) work();
  });
}

void Client::Impl::run() {
  io_.restart();
  io_.run();
}

void Client::Impl::cancel_all() {
  for (const auto& [id, stream] : std::exchange(streams_, {})) stream->close();
  for (const auto& timer : timers_) timer->cancel();
}

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() {
  cancel_all();
  run();
}

Result<std::unique_ptr<Client>> Client::create(std::string_view url) {
  auto impl = std::make_unique<Impl>();
  STRATA_TRY(impl->connect(url));
  return std::unique_ptr<Client>(new Client(std::move(impl)));
}

Client::Id Client::send(ClientRequest request, ClientHandlers handlers) {
  return impl_->send(std::move(request), std::move(handlers));
}
void Client::cancel(Id id) { impl_->cancel(id); }
void Client::at(Clock::time_point time, std::function<void()> work) {
  impl_->at(time, std::move(work));
}
void Client::run() { impl_->run(); }
void Client::cancel_all() { impl_->cancel_all(); }

Result<Client::Text> Client::ask(ClientRequest request) {
  const std::string path = request.path;
  Text text;
  Failure failed = Failure::kNone;
  bool too_long = false;
  Id id = 0;
  ClientHandlers handlers;
  handlers.on_body = [&](int, std::string_view bytes) {
    text.body += bytes;
    too_long = text.body.size() > kMostTextBytes;
    if (too_long) cancel(id);
  };
  handlers.on_end = [&](int status, Failure failure) {
    text.status = status;
    failed = failure;
  };
  id = send(std::move(request), std::move(handlers));
  run();
  if (too_long) return corrupt("{}: the answer has no end", path);
  if (failed != Failure::kNone || text.status == 0)
    return io_error("{}: the server gave no whole answer", path);
  return text;
}

}  // namespace strata::http
