// What becomes of text that no token of a vocabulary covers.
#pragma once

#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/tokenizer/vocabulary.h"

namespace strata {

class ByteFallback {
 public:
  // `vocabulary` must outlive this object.
  explicit ByteFallback(const Vocabulary& vocabulary)
      : byte_tokens_(byte_tokens(vocabulary)), unknown_(vocabulary.unknown_text_token()) {}

  // Appends the tokens of the bytes where all of them have one, else the unknown token. Fails
  // where there is neither.
  Status append(std::string_view bytes, std::vector<TokenId>& out) const;

  TokenId unknown() const { return unknown_; }

 private:
  std::vector<TokenId> byte_tokens_;
  TokenId unknown_;
};

}  // namespace strata
