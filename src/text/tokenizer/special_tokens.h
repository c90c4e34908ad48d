// Finds control and user-defined tokens in text before anything else looks at it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer/vocabulary.h"

namespace strata {

// Part of a text: a token that was found in it or, where `token` is kNoToken, text between tokens.
struct Fragment {
  TokenId token = kNoToken;
  std::string_view text;
};

// Where control tokens may be recognised: bytes [begin, end) of a text.
struct TrustedRange {
  std::size_t begin;
  std::size_t end;
};

// A trie over the texts of all special tokens. Immutable after construction.
class SpecialTokens {
 public:
  explicit SpecialTokens(const Vocabulary& vocabulary);

  // Cuts `text` from left to right, the longest token first where several start. User-defined
  // tokens are found everywhere, as every implementation does; control and unknown tokens only
  // where all their bytes lie in one of `trusted` (ascending, disjoint, not touching). Time is
  // linear in the text times the length of the longest special token.
  std::vector<Fragment> partition(std::string_view text,
                                  std::span<const TrustedRange> trusted) const;

 private:
  static constexpr std::int32_t kNoNode = -1;

  // Nodes with one parent are chained through `sibling`, in the order of their bytes.
  struct Node {
    TokenId control = kNoToken;  // the token whose text ends here, by what it takes to match it
    TokenId user_defined = kNoToken;
    std::int32_t child = kNoNode;
    std::int32_t sibling = kNoNode;
    char byte = 0;
  };

  void insert(std::string_view text, TokenId id, bool is_control);
  std::int32_t child_of(std::int32_t node, char byte) const;
  TokenId longest_match(std::string_view text, std::size_t trusted_bytes) const;

  const std::vector<Token>& tokens_;
  std::vector<Node> nodes_;
  std::array<std::int32_t, 256> roots_;
};

}  // namespace strata
