// What the tests of grammars share.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/token_masks.h"

namespace strata::testing {

inline Grammar compiled(Result<Grammar> grammar) {
  EXPECT_TRUE(grammar.ok()) << grammar.status().message();
  return grammar.ok() ? grammar.value() : *parse_gbnf("root ::= \"\"");
}
inline Grammar gbnf(std::string_view text) { return compiled(parse_gbnf(text)); }

// Whether the text is a whole answer.
inline bool accepts(const Grammar& grammar, std::string_view text) {
  GrammarMatcher matcher(grammar);
  return matcher.read(text) && matcher.done();
}
// Whether an answer may start so.
inline bool begins(const Grammar& grammar, std::string_view text) {
  return GrammarMatcher(grammar).read(text);
}

inline bool has_bit(std::span<const std::uint64_t> mask, TokenId token) {
  const auto index = static_cast<std::size_t>(token);
  return (mask[index / 64] >> (index % 64) & 1) != 0;
}

// The tokens that the matcher takes, found one by one.
inline std::vector<std::uint64_t> tried_mask(const GrammarMatcher& matcher,
                                             const TokenTable& table) {
  std::vector<std::uint64_t> mask(table.mask_words());
  for (TokenId token = 0; table.contains(token); ++token) {
    GrammarMatcher copy = matcher;
    const bool allowed = table.is_end(token)
                             ? matcher.done()
                             : !table.bytes(token).empty() && copy.read(table.bytes(token));
    if (allowed) mask[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << token % 64;
  }
  return mask;
}

inline std::vector<TokenId> tokens_of(std::span<const std::uint64_t> mask) {
  std::vector<TokenId> tokens;
  for (TokenId token = 0; token < static_cast<TokenId>(mask.size() * 64); ++token)
    if (has_bit(mask, token)) tokens.push_back(token);
  return tokens;
}

template <typename T>
const T& pick(const std::vector<T>& from, std::mt19937& random) {
  return from[random() % from.size()];
}

}  // namespace strata::testing
