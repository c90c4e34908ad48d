// A trie over byte strings: which of them a text starts with.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "text/tokenizer/vocabulary.h"

namespace strata {

// Immutable after construction; any thread.
class PrefixTrie {
 public:
  struct Entry {
    std::string_view key;
    TokenId id;
  };

  // Empty keys are left out; of equal keys the first counts. REQUIRES: fewer than 2^32 bytes.
  explicit PrefixTrie(std::vector<Entry> entries);

  // Calls visit(bytes, id) for every key that `text` starts with, the shortest first.
  template <typename Visit>
  void for_each_prefix(std::string_view text, const Visit& visit) const {
    std::uint32_t node = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
      node = child_of(nodes_[node], static_cast<unsigned char>(text[at]));
      if (node == 0) return;
      if (nodes_[node].id != kNoToken) visit(at + 1, nodes_[node].id);
    }
  }

  // The longest key that `text` starts with; an empty key and kNoToken where there is none.
  Entry longest_prefix(std::string_view text) const {
    Entry longest{{}, kNoToken};
    for_each_prefix(text, [&](std::size_t bytes, TokenId id) {
      longest = {text.substr(0, bytes), id};
    });
    return longest;
  }

 private:
  // The children of a node lie side by side, in the order of their bytes.
  struct Node {
    TokenId id = kNoToken;
    std::uint32_t first_child = 0;
    std::uint16_t children = 0;
    std::uint8_t byte = 0;
  };

  // 0, which is the root, where there is none.
  std::uint32_t child_of(const Node& node, std::uint8_t byte) const {
    const auto first = nodes_.begin() + node.first_child;
    const auto last = first + node.children;
    const auto child = std::ranges::lower_bound(first, last, byte, {}, &Node::byte);
    if (child == last || child->byte != byte) return 0;
    return static_cast<std::uint32_t>(child - nodes_.begin());
  }

  std::vector<Node> nodes_;
};

// The ordinary tokens of a vocabulary, by one of their strings.
std::vector<PrefixTrie::Entry> ordinary_tokens(const Vocabulary& vocabulary,
                                               std::string Token::*string);

}  // namespace strata
