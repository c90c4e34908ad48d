// Where a text of escaped spaces falls into parts that tokenize independently.
#pragma once

#include <array>
#include <string_view>

#include "text/tokenizer/escaped_space.h"

namespace strata {

// A text may be cut before a space that no token contains after the byte there: no token spans
// such a cut, so that the tokens of the parts are those of the whole.
class SegmentCutter {
 public:
  // For every token that text can become.
  void add(std::string_view token) {
    for (std::size_t at = token.find(kEscapedSpace, 1); at != token.npos;
         at = token.find(kEscapedSpace, at + 1))
      joins_space_[static_cast<unsigned char>(token[at - 1])] = true;
  }

  // The bytes of the first part of `text`.
  std::size_t next_cut(std::string_view text) const {
    for (std::size_t at = text.find(kEscapedSpace, 1); at != text.npos;
         at = text.find(kEscapedSpace, at + 1))
      if (!joins_space_[static_cast<unsigned char>(text[at - 1])]) return at;
    return text.size();
  }

 private:
  std::array<bool, 256> joins_space_{};  // some token has this byte right before U+2581
};

}  // namespace strata
