// The tokens of a vocabulary as a tree of their bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace strata {

// Built once per model. Safe to use from any thread.
class TokenTable {
 public:
  // A node of the tree, behind its parent: all below it stands up to `end`.
  struct Node {
    std::uint32_t end = 0;
    std::uint32_t first = 0;  // of its tokens, which reach up to the next node's
    std::uint16_t depth = 1;  // bytes from the root
    std::uint8_t byte = 0;    // the last of them
  };

  // `bytes` of every token. Those of `ends`, which end an answer, and `specials` are never part of
  // what a grammar reads, nor are empty ones and those of more than kMostBytes.
  TokenTable(std::vector<std::string> bytes, std::vector<TokenId> ends,
             const std::vector<TokenId>& specials);

  static constexpr std::size_t kMostBytes = 4096;
  // The most memory that a token of so many bytes takes in a table.
  static constexpr std::size_t memory_of(std::size_t bytes) {
    return sizeof(std::string) + bytes + sizeof(TokenId) + bytes * sizeof(Node);
  }

  std::size_t size() const { return bytes_.size(); }
  std::size_t mask_words() const { return ceil_div<std::size_t>(size(), 64); }
  std::string_view bytes(TokenId token) const { return bytes_[static_cast<std::size_t>(token)]; }
  bool contains(TokenId token) const {
    return token >= 0 && static_cast<std::size_t>(token) < size();
  }
  std::span<const TokenId> ends() const { return ends_; }  // ascending
  bool is_end(TokenId token) const;
  std::size_t longest() const { return longest_; }  // bytes of a token in the tree

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size() - 1); }
  const Node& node(std::uint32_t index) const { return nodes_[index]; }
  std::span<const TokenId> tokens_at(std::uint32_t index) const {
    const std::uint32_t first = nodes_[index].first;
    return std::span(tokens_).subspan(first, nodes_[index + 1].first - first);
  }

  // Visits nodes [first, end), which are whole subtrees, with `states[d]` for a path of d bytes;
  // `next(state, byte)` gives the state behind one more, and false of `take(node, state)` leaves
  // out what is below. REQUIRES: states has longest() + 1 entries, of which that of the parents of
  // the first node is set.
  template <typename State, typename Next, typename Take>
  void walk(std::uint32_t first, std::uint32_t end, std::vector<State>& states, Next next,
            Take take) const {
    for (std::uint32_t i = first; i < end;) {
      const Node& node = nodes_[i];
      const State state = next(states[node.depth - 1u], node.byte);
      states[node.depth] = state;
      i = take(i, state) ? i + 1 : node.end;
    }
  }

 private:
  std::vector<std::string> bytes_;
  std::vector<TokenId> ends_;
  std::vector<TokenId> tokens_;  // in the order of the nodes
  std::vector<Node> nodes_;      // and one behind the last
  std::size_t longest_ = 0;
};

}  // namespace strata
