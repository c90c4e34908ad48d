// Takes a response of HTTP/1.1 apart as its bytes come.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"

namespace strata::http {

class ResponseReader {
 public:
  enum class State : std::uint8_t { kHead, kBody, kDone, kFailed };

  // Appends to `body` what `bytes` hold of it. What follows the response is left out.
  State feed(std::string_view bytes, std::string& body);
  // The connection has ended, which ends a body of no stated length and breaks all else.
  State end();

  State state() const { return state_; }
  int status() const { return status_; }  // 0 before the head is whole

 private:
  enum class Framing : std::uint8_t { kLength, kChunked, kUntilEnd };

  bool read_head(std::string_view& bytes);
  bool parse_head();
  void read_chunked(std::string_view& bytes, std::string& body);
  void on_chunk_line();
  std::size_t take(std::string_view& bytes, std::string& body);

  State state_ = State::kHead;
  int status_ = 0;
  Framing framing_ = Framing::kUntilEnd;
  Bytes left_ = 0;            // of the body, or of the chunk
  bool in_chunk_ = false;     // its bytes, not a line, come next
  bool chunk_ended_ = false;  // an empty line must follow
  bool trailers_ = false;
  std::string line_;  // the head, or a line between chunks, as far as it came
};

}  // namespace strata::http
