#include "serve/http/connection.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <utility>

namespace strata::http {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kReadBytes = 64 * 1024;
constexpr auto kLingerTime = std::chrono::seconds(2);
constexpr auto kNever = std::chrono::hours(24);

HttpResponse stopping_response() {
  return overload_response("stopping", "the server is stopping; try again when it is back");
}

}  // namespace

ServerState::ServerState(ServerOptions server_options, Handler server_handler)
    : options(std::move(server_options)),
      handler(std::move(server_handler)),
      rules(options),
      loop(std::make_shared<Loop>()),
      pool(options.workers, options.max_queued),
      questions(1, options.max_queued),
      received(kReadBytes) {}

void ServerState::note_if_drained() const {
  if (stopping && std::ranges::none_of(open, [](const auto& each) { return each->busy(); }))
    on_drained();
}

Connection::Connection(ServerState& server, Socket socket)
    : server_(server),
      socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      ahead_(server.buffered) {
  ErrorCode ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  if (const auto peer = socket_.remote_endpoint(ignored); !ignored)
    peer_ = peer.address().to_string();
  if (const auto local = socket_.local_endpoint(ignored); !ignored)
    local_ = local.address().to_string();
}

void Connection::start() {
  spawn_read_loop();
  // Ends with the connection, whatever it throws.
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->watch(); },
      [self = shared_from_this()](const std::exception_ptr&) { self->drop(); });
}

void Connection::start_refusing(const HttpResponse& refusal) {
  crowded_out_ = true;
  ++server_.refusing;
  start();
  refuse(refusal, false);
}

void Connection::spawn_read_loop() {
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->read_loop(); },
      [self = shared_from_this()](const std::exception_ptr& error) {
        if (error) self->drop();
      });
}

// Reads while a request is answered too, so that a client that goes is noticed at once.
asio::awaitable<void, Executor> Connection::read_loop() {
  while (phase_ != Phase::kClosed) {
    ErrorCode error;
    co_await socket_.async_wait(Socket::wait_read, asio::redirect_error(kAwait, error));
    if (phase_ == Phase::kClosed) co_return;
    const std::size_t bytes = socket_.read_some(asio::buffer(server_.received), error);
    if (error == asio::error::would_block || error == asio::error::interrupted) continue;
    if (error) co_return drop();
    receive({server_.received.data(), bytes});
    // Not to read on would be not to notice that it goes.
    if (!charge_ahead()) co_return drop();
  }
}

asio::awaitable<void, Executor> Connection::watch() {
  while (phase_ != Phase::kClosed) {
    timer_.expires_at(deadline());
    ErrorCode ignored;
    co_await timer_.async_wait(asio::redirect_error(kAwait, ignored));
    if (phase_ != Phase::kClosed && Clock::now() >= deadline()) expire();
  }
}

void Connection::enter(Phase phase) {
  phase_ = phase;
  phase_start_ = Clock::now();
  rearm();
}

// To be called where the deadline may have come nearer; watch() sees by itself where it has not.
void Connection::rearm() {
  if (deadline() < timer_.expiry()) timer_.cancel();
}

Clock::time_point Connection::deadline() const {
  const ServerOptions& options = server_.options;
  Clock::time_point due = phase_start_ + kNever;
  switch (phase_) {
    case Phase::kIdle: due = phase_start_ + options.idle_timeout; break;
    case Phase::kHead: due = phase_start_ + options.header_timeout; break;
    case Phase::kBody: due = phase_start_ + options.body_timeout; break;
    case Phase::kStreaming:
      if (!stream_.keep_alive_chunk.empty()) due = last_sent_ + options.keep_alive_interval;
      break;
    case Phase::kHandling:
      if (opens_by_itself()) due = phase_start_ + options.keep_alive_interval;
      break;
    case Phase::kLingering: due = phase_start_ + kLingerTime; break;
    case Phase::kFlushing:
    case Phase::kClosed: break;
  }
  return blocked_ ? last_sent_ + options.write_timeout : due;
}

bool Connection::opens_by_itself() const {
  return standby_ && standby_->stream && !standby_->stream->keep_alive_chunk.empty();
}

void Connection::expire() {
  if (blocked_) {
    ++server_.slow;
    return drop();
  }
  switch (phase_) {
    case Phase::kHead:
    case Phase::kBody:
      return refuse(error_response(408, "invalid_request_error", "request_timeout",
                                   "the request took too long to arrive"),
                    false);
    case Phase::kHandling:
      if (!opens_by_itself()) return drop();
      open_stream(*std::move(standby_->stream));
      [[fallthrough]];
    case Phase::kStreaming: append(stream_.keep_alive_chunk, false); return flush();
    default: return drop();
  }
}

void Connection::receive(std::string_view bytes) {
  if (phase_ >= Phase::kFlushing) return;
  if (!takes_bytes()) {
    in_.append(bytes);
  } else if (in_.empty()) {
    consume(bytes);
  } else {
    in_.append(bytes);
    const std::string held = std::exchange(in_, {});
    consume(held);
  }
}

// Parses and dispatches until the bytes end or a request must be answered first.
void Connection::consume(std::string_view bytes) {
  consuming_ = true;
  while (!bytes.empty() && takes_bytes()) {
    if (!parser_) {
      parser_ = std::make_unique<RequestParser>(server_.options);
      checked_ = false;
      enter(Phase::kHead);
    }
    const std::size_t taken = parser_->feed(bytes);
    bytes.remove_prefix(taken);
    const RequestParser::State state = parser_->state();
    if (state == RequestParser::State::kFailed) {
      refuse(parser_->refusal(), false);
      break;
    }
    if (state == RequestParser::State::kHead) break;
    if (!std::exchange(checked_, true)) on_head();
    if (parser_) charge_body();
    if (!parser_) continue;
    if (state == RequestParser::State::kDone) {
      dispatch();
    } else if (phase_ == Phase::kHead) {
      enter(Phase::kBody);
      if (parser_->incoming().expects_continue && bytes.empty()) {
        out_ += "HTTP/1.1 100 Continue\r\n\r\n";
        pump();
      }
    } else if (taken == 0) {
      break;
    }
  }
  if (phase_ < Phase::kFlushing) in_.assign(bytes);
  consuming_ = false;
}

// Refuses what can be refused before the body comes.
void Connection::on_head() {
  IncomingRequest& incoming = parser_->incoming();
  incoming.request.peer = peer_;
  path_ = incoming.request.path;
  is_http11_ = incoming.is_http11;
  is_head_ = incoming.is_head;
  keep_open_ = incoming.keep_alive && !server_.stopping;
  cors_ = server_.rules.cors_headers(incoming);
  // Without a body to skip, the connection can go on: a client with a wrong key tries another.
  const bool whole = parser_->state() == RequestParser::State::kDone;
  if (server_.stopping)
    refuse(stopping_response(), false);
  else if (const auto answer = server_.rules.check(incoming, local_))
    refuse(*answer, keep_open_ && whole);
}

// False where it is too much.
bool Connection::charge_ahead() {
  ahead_.set(static_cast<Bytes>(in_.size()));
  return static_cast<Bytes>(in_.size()) <= server_.options.max_ahead_bytes &&
         (in_.empty() || server_.buffered <= server_.options.max_buffered_bytes);
}

// Counts what has come of the body against what all bodies may take together.
void Connection::charge_body() {
  if (!charge_) charge_ = std::make_shared<BodyCharge>(server_.buffered);
  charge_->set(static_cast<Bytes>(parser_->incoming().request.body.size()));
  if (server_.buffered > server_.options.max_buffered_bytes)
    refuse(overload_response("too_many_bytes", "the requests that are served take all the room"),
           false);
}

void Connection::dispatch() {
  if (server_.stopping) return refuse(stopping_response(), false);
  HttpRequest request = std::move(parser_->incoming().request);
  const bool is_question = request.body.empty();
  parser_.reset();
  channel_ = std::make_shared<Channel>(server_.loop);
  channel_->connection = this;
  enter(Phase::kHandling);
  auto exchange = std::make_shared<Exchange>(channel_);
  auto task = [&server = server_, charge = charge_, request = std::move(request),
               exchange = std::move(exchange)]() mutable {
    if (!exchange->closed()) server.handler(std::move(request), std::move(exchange));
  };
  WorkerPool& pool = is_question ? server_.questions : server_.pool;
  if (pool.try_push(std::move(task))) {
    ++server_.requests;
  } else {
    refuse(overload_response("too_many_requests", "too many requests wait"), keep_open_);
  }
}

// What came while a request was answered has its turn.
void Connection::resume() {
  if (consuming_) return;
  if (takes_bytes() && !in_.empty()) {
    const std::string held = std::exchange(in_, {});
    consume(held);
    (void)charge_ahead();
  }
}

void Connection::retire() {
  if (phase_ == Phase::kHandling) keep_open_ = false;
}

void Connection::cut() {
  keep_open_ = false;
  if (phase_ == Phase::kIdle && unsent() == 0) return drop();
  if (phase_ == Phase::kHead || phase_ == Phase::kBody) return refuse(stopping_response(), false);
  if (!channel_) return;
  ++server_.ended.cut;
  const std::shared_ptr<Channel> channel = std::exchange(channel_, nullptr);
  HttpResponse last = standby_ ? standby_->stopped : stopping_response();
  if (!standby_) put_in_form(last);
  conclude(last);
  channel->lose();
  flush();
}

bool Connection::busy() const {
  return phase_ != Phase::kClosed && (phase_ >= Phase::kHandling || unsent() > 0);
}

bool Connection::idle_since(Clock::time_point time) const {
  if (phase_ != Phase::kIdle || phase_start_ > time || unsent() > 0) return false;
  ErrorCode error;
  return socket_.available(error) == 0;
}

void Connection::drop() {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  phase_ = Phase::kClosed;
  ErrorCode ignored;
  socket_.close(ignored);
  timer_.cancel();
  charge_.reset();
  server_.open.erase(self);
  if (crowded_out_) --server_.refusing;
  server_.connections = server_.open.size();
  if (channel_) {
    ++server_.disconnected;
    std::exchange(channel_, nullptr)->lose();
  }
  server_.note_if_drained();
}

}  // namespace strata::http
