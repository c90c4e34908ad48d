// Texts that end a repetition, as what each token contributes to them.
#pragma once

#include <compare>
#include <cstdint>

#include "base/units.h"

namespace strata {

// One way of a token to write a stretch of a text, whose bytes lie in `from` to `to`.
struct BreakerPart {
  static constexpr std::int32_t kOutside = 0;  // `from`: the text begins within the token;
                                               // `to`: it ends there
  TokenId token = 0;
  std::int32_t text = 0;  // which of the texts
  std::int32_t from = kOutside;
  std::int32_t to = kOutside;

  bool is_whole() const { return from == kOutside && to == kOutside; }
  auto operator<=>(const BreakerPart&) const = default;
};

}  // namespace strata
