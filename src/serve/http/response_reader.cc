#include "serve/http/response_reader.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

#include "base/ascii.h"

namespace strata::http {
namespace {

constexpr std::size_t kMostHeadBytes = 64 * 1024;
constexpr std::size_t kMostLineBytes = 4096;

template <typename T>
std::optional<T> number(std::string_view text, int base = 10) {
  T value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value, base);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

ResponseReader::State ResponseReader::feed(std::string_view bytes, std::string& body) {
  while (!bytes.empty() && (state_ == State::kHead || state_ == State::kBody)) {
    if (state_ == State::kHead) {
      if (!read_head(bytes)) state_ = State::kFailed;
    } else if (framing_ == Framing::kUntilEnd) {
      body.append(bytes);
      bytes = {};
    } else if (framing_ == Framing::kChunked) {
      read_chunked(bytes, body);
    } else if (take(bytes, body) == 0) {
      state_ = State::kDone;
    }
  }
  return state_;
}

ResponseReader::State ResponseReader::end() {
  if (state_ == State::kBody && framing_ == Framing::kUntilEnd) state_ = State::kDone;
  if (state_ != State::kDone) state_ = State::kFailed;
  return state_;
}

// What is left of the body or chunk afterwards.
std::size_t ResponseReader::take(std::string_view& bytes, std::string& body) {
  const std::size_t taken = std::min<Bytes>(bytes.size(), left_);
  body.append(bytes.substr(0, taken));
  bytes.remove_prefix(taken);
  left_ -= taken;
  return left_;
}

bool ResponseReader::read_head(std::string_view& bytes) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  const std::size_t before = line_.size();
  line_.append(bytes.substr(0, kMostHeadBytes + 1 - std::min(before, kMostHeadBytes)));
  const std::size_t from = before < kEnd.size() ? 0 : before - kEnd.size();
  const std::size_t end = line_.find(kEnd, from);
  if (end == std::string::npos) {
    bytes = {};
    return line_.size() <= kMostHeadBytes;
  }
  bytes.remove_prefix(end + kEnd.size() - before);
  line_.resize(end);
  const bool fits = parse_head();
  line_.clear();
  return fits;
}

bool ResponseReader::parse_head() {
  const auto lines = split(line_, '\n');
  const std::string_view first = trimmed(lines.front());
  if (!first.starts_with("HTTP/1.") || first.size() < 12) return false;
  const auto status = number<int>(first.substr(9, 3));
  if (!status || *status < 100) return false;
  if (*status < 200) return true;  // the response itself is still to come
  status_ = *status;
  std::optional<Bytes> length;
  for (const std::string_view line : std::span(lines).subspan(1)) {
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string name = lower_case(line.substr(0, colon));
    const std::string_view value = trimmed(line.substr(std::min(colon + 1, line.size())));
    if (name == "transfer-encoding") {
      if (lower_case(value) != "chunked") return false;
      framing_ = Framing::kChunked;
    } else if (name == "content-length") {
      length = number<Bytes>(value);
      if (!length) return false;
    }
  }
  state_ = State::kBody;
  if (framing_ == Framing::kChunked) return true;
  if (status_ == 204 || status_ == 304) length = 0;
  if (!length) return true;
  framing_ = Framing::kLength;
  left_ = *length;
  if (left_ == 0) state_ = State::kDone;
  return true;
}

void ResponseReader::read_chunked(std::string_view& bytes, std::string& body) {
  if (in_chunk_) {
    if (take(bytes, body) == 0) {
      in_chunk_ = false;
      chunk_ended_ = true;
    }
    return;
  }
  const std::size_t end = std::min(bytes.find('\n'), bytes.size());
  line_.append(bytes.substr(0, std::min(end, kMostLineBytes + 1)));
  const bool whole = end < bytes.size();
  bytes.remove_prefix(whole ? end + 1 : end);
  if (line_.size() > kMostLineBytes) {
    state_ = State::kFailed;
  } else if (whole) {
    on_chunk_line();
    line_.clear();
  }
}

void ResponseReader::on_chunk_line() {
  if (!line_.ends_with('\r')) {
    state_ = State::kFailed;
    return;
  }
  line_.pop_back();
  if (trailers_) {
    if (line_.empty()) state_ = State::kDone;
    return;
  }
  if (chunk_ended_) {
    chunk_ended_ = false;
    if (!line_.empty()) state_ = State::kFailed;
    return;
  }
  const std::string_view size = trimmed(std::string_view(line_).substr(0, line_.find(';')));
  const auto bytes = number<Bytes>(size, 16);
  if (!bytes) {
    state_ = State::kFailed;
    return;
  }
  left_ = *bytes;
  in_chunk_ = left_ > 0;
  trailers_ = left_ == 0;
}

}  // namespace strata::http
