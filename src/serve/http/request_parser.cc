#include "serve/http/request_parser.h"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/ascii.h"
#include "base/printable.h"
#include "serve/http/target.h"

namespace strata::http {
namespace {

namespace beast = boost::beast;
using beast::http::error;
using ErrorCode = boost::system::error_code;

// A body of stated length gets this much memory at once, more as it comes.
constexpr Bytes kReserved = 1 * kMiB;

// What may stand before a request (RFC 9112, 2.2), so often.
constexpr std::string_view kEmptyLine = "\r\n";
constexpr int kMostEmptyLines = 4;

std::string_view view(beast::string_view text) { return {text.data(), text.size()}; }

HttpResponse refusal_of(const ErrorCode& code, const ServerOptions& options) {
  if (code == error::header_limit)
    return error_response(
        431, "invalid_request_error", "headers_too_large",
        fmt::format("the headers are larger than {} bytes", options.max_header_bytes));
  if (code == error::body_limit)
    return error_response(413, "invalid_request_error", "body_too_large",
                          fmt::format("the body is larger than {} bytes", options.max_body_bytes));
  if (code == error::bad_version)
    return error_response(505, "invalid_request_error", "version_not_supported",
                          "the server speaks HTTP/1.1 and HTTP/1.0");
  return error_response(400, "invalid_request_error", "malformed_request",
                        fmt::format("no valid HTTP request: {}", code.message()));
}

}  // namespace

class RequestParser::Impl : public beast::http::basic_parser<true> {
 public:
  explicit Impl(const ServerOptions& options) : options_(options) {
    header_limit(static_cast<std::uint32_t>(std::min<Bytes>(options.max_header_bytes, kGiB)));
    body_limit(options.max_body_bytes);
  }

  std::size_t feed(std::string_view bytes) {
    std::size_t consumed = skip_empty_lines(bytes);
    if (takes_empty_line() && bytes.substr(consumed) == kEmptyLine.substr(0, 1)) return consumed;
    while (consumed < bytes.size()) {
      const State before = state_;
      const std::size_t body_before = incoming_.request.body.size();
      ErrorCode code;
      const std::size_t taken =
          put(boost::asio::const_buffer(bytes.data() + consumed, bytes.size() - consumed), code);
      consumed += taken;
      if (before == State::kHead) head_bytes_ += taken;
      // The base class limits one call's bytes of a head, and nothing of chunk headers and
      // trailers.
      const std::size_t framing = taken - (incoming_.request.body.size() - body_before);
      const bool waits = code == error::need_more;
      const std::size_t held = waits ? bytes.size() - consumed : 0;
      if ((before == State::kHead ? head_bytes_ : framing) + held > options_.max_header_bytes)
        fail(error::header_limit);
      else if (code && !waits)
        fail(code);
      if (code || state_ != before) break;
    }
    return consumed;
  }

  State state_ = State::kHead;
  IncomingRequest incoming_;
  HttpResponse refusal_;

 private:
  bool takes_empty_line() const {
    return state_ == State::kHead && head_bytes_ == 0 && empty_lines_ < kMostEmptyLines;
  }
  std::size_t skip_empty_lines(std::string_view bytes) {
    std::size_t skipped = 0;
    while (takes_empty_line() && bytes.substr(skipped).starts_with(kEmptyLine)) {
      skipped += kEmptyLine.size();
      ++empty_lines_;
    }
    return skipped;
  }

  void fail(const ErrorCode& code) {
    if (state_ == State::kFailed) return;
    state_ = State::kFailed;
    refusal_ = refusal_of(code, options_);
  }
  // For what the parser allows and we do not.
  void refuse(int status, std::string_view code, std::string_view message, ErrorCode& result) {
    state_ = State::kFailed;
    refusal_ = error_response(status, "invalid_request_error", code, message);
    result = error::bad_value;
  }

  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target,
                       int version, ErrorCode& code) override {
    incoming_.is_http11 = version >= 11;
    incoming_.is_head = method == "HEAD";
    incoming_.request.method = incoming_.is_head ? "GET" : std::string(view(method));
    auto parsed = http::parse_target(view(target));
    if (!parsed.ok()) return refuse(400, "malformed_address", parsed.status().message(), code);
    incoming_.request.path = std::move(parsed->path);
    incoming_.request.query = std::move(parsed->query);
    incoming_.authority = std::move(parsed->authority);
  }

  void on_field_impl(beast::http::field, beast::string_view name, beast::string_view value,
                     ErrorCode& code) override {
    if (state_ != State::kHead) return;  // trailers say nothing that matters here
    const std::string lower = lower_case(view(name));
    if (lower == "transfer-encoding") {
      if (lower_case(view(value)) != "chunked" || !incoming_.is_http11)
        return refuse(501, "encoding_not_supported",
                      "of all transfer encodings only \"chunked\" is supported", code);
    } else if (lower == "content-encoding") {
      if (!value.empty() && lower_case(view(value)) != "identity")
        return refuse(415, "encoding_not_supported",
                      fmt::format("the body is compressed (Content-Encoding: {}); send it as it is",
                                  printable(view(value), 40)),
                      code);
    } else if (lower == "host") {
      if (has_host_) return refuse(400, "malformed_request", "two Host headers", code);
      has_host_ = true;
      if (incoming_.authority.empty()) incoming_.authority = view(value);
    } else if (lower == "expect") {
      incoming_.expects_continue = lower_case(view(value)) == "100-continue";
      if (!incoming_.expects_continue)
        return refuse(417, "expectation_failed", "unknown Expect header", code);
    }
    incoming_.request.headers.emplace_back(view(name), view(value));
  }

  void on_header_impl(ErrorCode& code) override {
    if (incoming_.is_http11 && !has_host_)
      return refuse(400, "malformed_request", "the Host header is missing", code);
    incoming_.keep_alive = keep_alive();
    incoming_.expects_continue = incoming_.expects_continue && incoming_.is_http11;
    if (const auto length = content_length()) incoming_.content_length = *length;
    state_ = State::kBody;
  }

  void on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode&) override {
    if (length) incoming_.request.body.reserve(std::min<Bytes>(*length, kReserved));
  }
  std::size_t on_body_impl(beast::string_view bytes, ErrorCode&) override {
    incoming_.request.body.append(bytes.data(), bytes.size());
    return bytes.size();
  }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view bytes,
                                 ErrorCode& code) override {
    return on_body_impl(bytes, code);
  }
  void on_finish_impl(ErrorCode&) override { state_ = State::kDone; }
  void on_response_impl(int, beast::string_view, int, ErrorCode&) override {}

  const ServerOptions& options_;
  std::size_t head_bytes_ = 0;
  int empty_lines_ = 0;
  bool has_host_ = false;
};

RequestParser::RequestParser(const ServerOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
RequestParser::~RequestParser() = default;

std::size_t RequestParser::feed(std::string_view bytes) { return impl_->feed(bytes); }
RequestParser::State RequestParser::state() const { return impl_->state_; }
IncomingRequest& RequestParser::incoming() { return impl_->incoming_; }
HttpResponse RequestParser::refusal() const { return impl_->refusal_; }

}  // namespace strata::http
