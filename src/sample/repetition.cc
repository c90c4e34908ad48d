#include "sample/repetition.h"

#include <algorithm>

namespace strata {
namespace {

using Parts = std::span<const BreakerPart>;

Parts parts_of(Parts breakers, TokenId token) {
  const auto first = std::ranges::lower_bound(breakers, token, {}, &BreakerPart::token);
  const auto last = std::ranges::upper_bound(breakers, token, {}, &BreakerPart::token);
  return {first, last};
}

// Tokens that write the breaker which begins with `part`, the first of `tokens`; 0: they do not.
std::size_t breaker_length(std::span<const TokenId> tokens, Parts breakers, BreakerPart part) {
  std::size_t count = 1;
  for (; part.to != BreakerPart::kOutside; ++count) {
    if (count == tokens.size()) return 0;
    const Parts parts = parts_of(breakers, tokens[count]);
    const auto next = std::ranges::find_if(parts, [&](const BreakerPart& other) {
      return other.text == part.text && other.from == part.to;
    });
    if (next == parts.end()) return 0;
    part = *next;
  }
  return count;
}

// Tokens behind the last breaker; of breakers that start together the longest counts.
std::size_t tokens_since_breaker(std::span<const TokenId> history, Parts breakers) {
  for (std::size_t since = 1; since <= history.size(); ++since) {
    const auto rest = history.last(since);
    std::size_t longest = 0;
    for (const BreakerPart& part : parts_of(breakers, rest.front()))
      if (part.from == BreakerPart::kOutside)
        longest = std::max(longest, breaker_length(rest, breakers, part));
    if (longest > 0) return since - longest;
  }
  return history.size();
}

}  // namespace

const std::unordered_map<TokenId, std::size_t>& RepetitionFinder::find(
    std::span<const TokenId> history, std::size_t shortest, Parts breakers) {
  longest_.clear();
  const std::size_t count = history.size();
  const std::size_t limit = tokens_since_breaker(history, breakers);
  if (limit < shortest || count <= shortest) return longest_;
  // The Z-function (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1997) of the history
  // read backwards: matches_[k] tokens before the last k are also the last ones.
  const auto back = [&](std::size_t i) { return history[count - 1 - i]; };
  matches_.assign(count, 0);
  std::size_t begin = 0, end = 0;  // the stretch known to match that reaches furthest back
  for (std::size_t k = 1; k < count; ++k) {
    std::size_t length = k < end ? std::min(end - k, matches_[k - begin]) : 0;
    while (k + length < count && back(length) == back(k + length)) ++length;
    matches_[k] = length;
    if (k + length > end) {
      begin = k;
      end = k + length;
    }
    if (length < shortest) continue;
    std::size_t& longest = longest_[back(k - 1)];
    longest = std::max(longest, std::min(length, limit));
  }
  std::erase_if(longest_, [&](const auto& entry) {
    return std::ranges::any_of(parts_of(breakers, entry.first), &BreakerPart::is_whole);
  });
  return longest_;
}

}  // namespace strata
