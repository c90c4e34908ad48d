// Remembers the tokens of short pieces: words repeat, and merging is dear.
#pragma once

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "text/tokenizer/hash_tables.h"

namespace strata {

// Bounded; for one vocabulary and one thread.
class PieceCache {
 public:
  // Appends the tokens of `piece` to `out`; false where it is not known.
  bool append(std::string_view piece, std::vector<TokenId>& out) const {
    if (piece.size() > kMaxPieceBytes) return false;
    const std::int32_t entry = index_.find(piece);
    if (entry == TextTable::kNone) return false;
    const auto first = tokens_.begin() + entries_[entry].begin;
    out.insert(out.end(), first, first + entries_[entry].count);
    return true;
  }

  void insert(std::string_view piece, std::span<const TokenId> tokens) {
    if (piece.size() > kMaxPieceBytes || entries_.size() == kMaxEntries) return;
    auto& key = keys_.emplace_back();
    std::ranges::copy(piece, key.begin());
    index_.insert({key.data(), piece.size()}, static_cast<std::int32_t>(entries_.size()));
    entries_.push_back(
        {static_cast<std::uint32_t>(tokens_.size()), static_cast<std::uint32_t>(tokens.size())});
    tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  }

 private:
  static constexpr std::size_t kMaxPieceBytes = 48;
  static constexpr std::size_t kMaxEntries = 16384;

  struct Entry {
    std::uint32_t begin;
    std::uint32_t count;
  };

  std::deque<std::array<char, kMaxPieceBytes>> keys_;  // a deque never moves what it holds
  TextTable index_;
  std::vector<Entry> entries_;
  std::vector<TokenId> tokens_;
};

}  // namespace strata
