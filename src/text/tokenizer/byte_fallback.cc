#include "text/tokenizer/byte_fallback.h"

#include <algorithm>

#include "base/printable.h"

namespace strata {

Status ByteFallback::append(std::string_view bytes, std::vector<TokenId>& out) const {
  const auto token_of = [&](char c) { return byte_tokens_[static_cast<unsigned char>(c)]; };
  if (std::ranges::all_of(bytes, [&](char c) { return token_of(c) != kNoToken; })) {
    for (const char c : bytes) out.push_back(token_of(c));
    return {};
  }
  if (unknown_ == kNoToken)
    return invalid_argument("the text holds `{}`, for which the vocabulary has no token",
                            printable(bytes));
  out.push_back(unknown_);
  return {};
}

}  // namespace strata
