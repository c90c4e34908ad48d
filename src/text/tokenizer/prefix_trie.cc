#include "text/tokenizer/prefix_trie.h"

namespace strata {

// Breadth first, so that siblings are made one after the other.
PrefixTrie::PrefixTrie(std::vector<Entry> entries) : nodes_(1) {
  std::ranges::stable_sort(entries, {}, &Entry::key);
  struct Range {  // the entries below a node
    std::size_t begin;
    std::size_t end;
  };
  std::vector<Range> level = {{0, entries.size()}};
  std::vector<Range> next;
  std::uint32_t node = 0;
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    next.clear();
    for (const Range& range : level) {
      std::size_t at = range.begin;
      while (at < range.end && entries[at].key.size() == depth) ++at;
      if (at > range.begin && depth > 0) nodes_[node].id = entries[range.begin].id;
      nodes_[node].first_child = static_cast<std::uint32_t>(nodes_.size());
      while (at < range.end) {
        const char byte = entries[at].key[depth];
        const std::size_t begin = at;
        while (at < range.end && entries[at].key[depth] == byte) ++at;
        nodes_.push_back({.byte = static_cast<std::uint8_t>(byte)});
        ++nodes_[node].children;
        next.push_back({begin, at});
      }
      ++node;
    }
    level.swap(next);
  }
}

std::vector<PrefixTrie::Entry> ordinary_tokens(const Vocabulary& vocabulary,
                                               std::string Token::*string) {
  std::vector<PrefixTrie::Entry> entries;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const Token& token = vocabulary.tokens[id];
    if (token.is_ordinary()) entries.push_back({token.*string, id});
  }
  return entries;
}

}  // namespace strata
