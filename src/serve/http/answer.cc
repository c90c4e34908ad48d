// How a connection writes answers and streams.
#include <fmt/format.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <charconv>
#include <iterator>
#include <utility>

#include "serve/http/connection.h"

namespace strata::http {
namespace {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;

constexpr std::size_t kKeptBytes = 16 * 1024;  // of an empty output buffer

std::string_view reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 201: return "Created";
    case 202: return "Accepted";
    case 204: return "No Content";
    case 304: return "Not Modified";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 403: return "Forbidden";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 409: return "Conflict";
    case 413: return "Content Too Large";
    case 415: return "Unsupported Media Type";
    case 417: return "Expectation Failed";
    case 422: return "Unprocessable Content";
    case 429: return "Too Many Requests";
    case 431: return "Request Header Fields Too Large";
    case 500: return "Internal Server Error";
    case 501: return "Not Implemented";
    case 503: return "Service Unavailable";
    case 505: return "HTTP Version Not Supported";
    default: return "";
  }
}

bool has_body(int status) { return status >= 200 && status != 204 && status != 304; }

// Control characters would let a value become headers of its own.
void append_value(std::string& out, std::string_view value) {
  for (const char c : value) out += static_cast<unsigned char>(c) < ' ' && c != '\t' ? ' ' : c;
}

}  // namespace

void Connection::append_head(int status, const Fields& fields, std::string_view content_type) {
  fmt::format_to(std::back_inserter(out_), "HTTP/1.1 {} {}\r\nDate: {}\r\n", status,
                 reason_of(status), server_.loop->date());
  const auto append = [this](std::string_view name, std::string_view value) {
    append_value(out_, name);
    out_ += ": ";
    append_value(out_, value);
    out_ += "\r\n";
  };
  if (!content_type.empty() && has_body(status)) append("Content-Type", content_type);
  for (const auto& [name, value] : fields) append(name, value);
  for (const auto& [name, value] : cors_) append(name, value);
  if (!keep_open_) {
    append("Connection", "close");
  } else if (!is_http11_) {
    append("Connection", "keep-alive");
  }
}

void Connection::answer(const HttpResponse& response) {
  append_head(response.status, response.headers, response.content_type);
  if (has_body(response.status))
    fmt::format_to(std::back_inserter(out_), "Content-Length: {}\r\n", response.body.size());
  out_ += "\r\n";
  if (!is_head_ && has_body(response.status)) out_ += response.body;
  end_answer();
}

// Where a stream is open, the response becomes its end.
bool Connection::conclude(const HttpResponse& response) {
  if (phase_ == Phase::kStreaming && stream_.error_prefix.size() + stream_.error_suffix.size() > 0)
    return append(stream_.error_prefix + response.body + stream_.error_suffix, true);
  if (phase_ == Phase::kHandling)
    answer(response);
  else if (phase_ == Phase::kStreaming)
    abandon();
  return mark_dirty();
}

void Connection::refuse(HttpResponse refusal, bool keep_alive) {
  ++server_.refused;
  keep_open_ = keep_alive;
  if (parser_) path_ = parser_->incoming().request.path;
  parser_.reset();
  put_in_form(refusal);
  answer(refusal);
  pump();
}

void Connection::put_in_form(HttpResponse& error) const {
  if (error.error.empty() || !server_.options.error_body) return;
  if (auto body = server_.options.error_body(path_, error.error)) error.body = std::move(*body);
}

void Connection::open_stream(StreamStart start) {
  chunked_ = is_http11_;
  keep_open_ = keep_open_ && chunked_;
  append_head(start.status, start.headers, start.content_type);
  out_ += chunked_ ? "Transfer-Encoding: chunked\r\n\r\n" : "\r\n";
  stream_ = std::move(start);
  stream_.headers.clear();
  last_sent_ = Clock::now();
  enter(Phase::kStreaming);
  if (is_head_) end_answer();
}

bool Connection::append(std::string_view chunk, bool last) {
  if (phase_ != Phase::kStreaming) return false;
  if (!chunk.empty() && chunked_) {
    std::array<char, 2 * sizeof(std::size_t)> size;
    const auto [end, error] =
        std::to_chars(size.data(), size.data() + size.size(), chunk.size(), 16);
    out_.append(size.data(), end).append("\r\n").append(chunk).append("\r\n");
  } else {
    out_ += chunk;
  }
  if (unsent() > server_.options.stream_buffer_bytes && !catch_up()) return false;
  if (last) {
    if (chunked_) out_ += "0\r\n\r\n";
    end_answer();
  }
  return mark_dirty();
}

bool Connection::apply(Command& command) {
  const bool handling = phase_ == Phase::kHandling;
  if (auto* standby = std::get_if<Standby>(&command.what)) {
    standby_ = std::move(*standby);
    rearm();
    return false;
  }
  if (const auto* response = std::get_if<HttpResponse>(&command.what)) return conclude(*response);
  if (auto* start = std::get_if<StreamStart>(&command.what)) {
    if (handling) open_stream(std::move(*start));
  } else if (const auto* chunk = std::get_if<std::string>(&command.what)) {
    return append(*chunk, false);
  } else if (auto* resume = std::get_if<Resume>(&command.what)) {
    server_.pool.push([charge = charge_, task = std::move(resume->task)] { task(); });
    return false;
  } else if (std::holds_alternative<Finish>(command.what)) {
    return append({}, true);
  } else {
    abandon();
  }
  return mark_dirty();
}

// Without its last chunk, the client sees that the stream is not whole; where there are no chunks,
// only a reset says so.
void Connection::abandon() {
  if (phase_ == Phase::kHandling) {
    HttpResponse error = error_response(500, "server_error", "unanswered",
                                        "the server failed to answer this request");
    put_in_form(error);
    return answer(error);
  }
  pump();
  ErrorCode ignored;
  if (!chunked_) socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  drop();
}

void Connection::end_answer() {
  charge_.reset();
  cors_.clear();
  stream_ = {};
  standby_.reset();
  is_head_ = false;
  if (channel_) {
    std::exchange(channel_, nullptr)->complete();
    if (server_.stopping) ++server_.ended.finished;
  }
  enter(keep_open_ ? Phase::kIdle : Phase::kFlushing);
}

bool Connection::mark_dirty() { return !std::exchange(dirty_, true); }

void Connection::flush() {
  dirty_ = false;
  pump();
}

// Drops a client that is too far behind its stream; false where it is gone.
bool Connection::catch_up() {
  pump(true);
  if (phase_ == Phase::kStreaming && unsent() > server_.options.stream_buffer_bytes) {
    ++server_.slow;
    drop();
  }
  return phase_ == Phase::kStreaming;
}

// Writes what the socket takes. A blocked one may have room again before it says so: see `retry`.
void Connection::pump(bool retry) {
  while (phase_ != Phase::kClosed && (!blocked_ || retry) && unsent() > 0) {
    ErrorCode error;
    const std::size_t bytes =
        socket_.write_some(asio::buffer(out_.data() + sent_, unsent()), error);
    sent_ += bytes;
    if (error == asio::error::interrupted) continue;
    if (error && error != asio::error::would_block) return drop();
    if (bytes > 0 || !error) last_sent_ = Clock::now();
    if (!error) continue;
    if (sent_ > out_.size() / 2) out_.erase(0, std::exchange(sent_, 0));
    if (std::exchange(blocked_, true)) return;
    socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const ErrorCode& failed) {
      self->blocked_ = false;
      if (!failed) self->pump();
    });
    rearm();
    return;
  }
  if (phase_ != Phase::kClosed && unsent() == 0) on_sent();
}

void Connection::on_sent() {
  sent_ = 0;
  out_.clear();
  if (out_.capacity() > kKeptBytes) out_.shrink_to_fit();
  if (phase_ == Phase::kFlushing) return linger();
  server_.note_if_drained();
  if (phase_ <= Phase::kBody) resume();
}

// Reads on for a while: closing a socket with unread bytes could take the answer from its client.
void Connection::linger() {
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  in_.clear();
  enter(Phase::kLingering);
  resume();
}

}  // namespace strata::http
