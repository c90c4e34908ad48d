#include "sample/repetition.h"

#include <algorithm>

namespace strata {
namespace {

using Breakers = RepetitionFinder::Breakers;

// The breakers that begin with `head`.
std::span<const std::vector<TokenId>> breakers_at(const Breakers& breakers, TokenId head) {
  const auto first_token = [](const std::vector<TokenId>& breaker) { return breaker.front(); };
  return {std::ranges::lower_bound(breakers, head, {}, first_token),
          std::ranges::upper_bound(breakers, head, {}, first_token)};
}

bool starts_with(std::span<const TokenId> tokens, std::span<const TokenId> prefix) {
  return prefix.size() <= tokens.size() && std::equal(prefix.begin(), prefix.end(), tokens.begin());
}

// Tokens behind the last breaker; of breakers that start together the longest counts.
std::size_t tokens_since_breaker(std::span<const TokenId> history, const Breakers& breakers) {
  for (std::size_t since = 1; since <= history.size(); ++since) {
    const auto rest = history.last(since);
    std::size_t longest = 0;
    for (const std::vector<TokenId>& breaker : breakers_at(breakers, rest.front()))
      if (starts_with(rest, breaker)) longest = std::max(longest, breaker.size());
    if (longest > 0) return since - longest;
  }
  return history.size();
}

}  // namespace

const std::unordered_map<TokenId, std::size_t>& RepetitionFinder::find(
    std::span<const TokenId> history, std::size_t shortest, const Breakers& breakers) {
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
    const auto own = breakers_at(breakers, entry.first);
    return !own.empty() && own.front().size() == 1;
  });
  return longest_;
}

}  // namespace strata
