// The loop that byte-pair encoding and SentencePiece's BPE share: join the neighbouring symbols
// whose merge has the smallest priority, leftmost first, until none can be joined.
// Source: Sennrich, Haddow, Birch, "Neural Machine Translation of Rare Words with Subword Units".
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "text/tokenizer/hash_tables.h"

namespace strata {

struct Symbol {
  std::uint32_t start;   // in bytes of the text that is merged
  std::uint32_t length;  // 0: joined to a symbol on its left
  std::int32_t id;       // what the caller's lookup knows it by
};

// Reusable between texts, so that short pieces cost no allocation. For one thread.
class Merger {
 public:
  void clear() { nodes_.clear(); }
  void add(Symbol symbol) {
    const auto index = static_cast<std::int32_t>(nodes_.size());
    nodes_.push_back({symbol, index - 1, index + 1});
  }

  // `lookup(left, right)` returns the merge of two neighbours, if there is one.
  // O(n log n) lookups and comparisons in the number of symbols. REQUIRES: fewer than 2^31.
  template <typename Lookup>
  void merge(const Lookup& lookup) {
    heap_.clear();
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i)
      consider(static_cast<std::int32_t>(i), lookup);
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const Candidate best = heap_.back();
      heap_.pop_back();
      Node& left = nodes_[best.left()];
      if (left.symbol.length == 0 || left.next >= end()) continue;
      Node& right = nodes_[left.next];
      // Symbols only grow, so an unchanged length says that both are those that were looked up.
      if (left.symbol.length + right.symbol.length != best.length) continue;
      left.symbol.length = best.length;
      left.symbol.id = best.id;
      right.symbol.length = 0;
      left.next = right.next;
      if (left.next < end()) nodes_[left.next].previous = best.left();
      if (left.previous >= 0) consider(left.previous, lookup);
      consider(best.left(), lookup);
    }
  }

  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (std::int32_t i = 0; i < end(); i = nodes_[i].next) visit(nodes_[i].symbol);
  }

 private:
  struct Node {
    Symbol symbol;
    std::int32_t previous;
    std::int32_t next;
  };

  struct Candidate {
    std::uint64_t order;  // priority, then the index of the left symbol
    std::uint32_t length;
    std::int32_t id;
    std::int32_t left() const { return static_cast<std::int32_t>(order & 0xffffffffu); }
    bool operator>(const Candidate& other) const { return order > other.order; }
  };

  std::int32_t end() const { return static_cast<std::int32_t>(nodes_.size()); }

  template <typename Lookup>
  void consider(std::int32_t left, const Lookup& lookup) {
    const std::int32_t right = nodes_[left].next;
    if (right >= end()) return;
    const Symbol& a = nodes_[left].symbol;
    const Symbol& b = nodes_[right].symbol;
    const std::optional<Merge> merge = lookup(a, b);
    if (!merge) return;
    heap_.push_back({(std::uint64_t{merge->priority} << 32) | static_cast<std::uint32_t>(left),
                     a.length + b.length, merge->id});
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

}  // namespace strata
