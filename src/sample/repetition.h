// Which tokens would prolong a repetition, and how long it is already ("DRY").
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/breaker_part.h"
#include "base/units.h"

namespace strata {

// Linear in the history. Keeps its buffers from call to call.
class RepetitionFinder {
 public:
  // For every token that came after an earlier occurrence of the last n >= shortest tokens of
  // `history`: the largest n. An occurrence holds no breaker, as what precedes the last one does
  // not count. Tokens that hold a whole breaker are left out. REQUIRES: `breakers` ascend.
  const std::unordered_map<TokenId, std::size_t>& find(std::span<const TokenId> history,
                                                       std::size_t shortest,
                                                       std::span<const BreakerPart> breakers);

 private:
  std::unordered_map<TokenId, std::size_t> longest_;
  std::vector<std::size_t> matches_;
};

}  // namespace strata
