#include "schedule/prefix_index.h"

#include <openssl/sha.h>

#include <algorithm>

namespace strata {
namespace {

// The first byte of what is hashed keeps the two kinds of names apart.
BlockName hash(std::uint8_t kind, std::span<const std::uint8_t> head,
               std::span<const std::uint8_t> tail) {
  std::vector<std::uint8_t> bytes{kind};
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  BlockName name;
  SHA256(bytes.data(), bytes.size(), name.digest.data());
  return name;
}

}  // namespace

BlockName root_name(std::string_view salt) {
  return hash(0, {}, {reinterpret_cast<const std::uint8_t*>(salt.data()), salt.size()});
}

BlockName block_name(const BlockName& parent, std::span<const TokenId> tokens) {
  return hash(1, parent.digest,
              {reinterpret_cast<const std::uint8_t*>(tokens.data()), tokens.size_bytes()});
}

std::optional<BlockId> PrefixIndex::find(const BlockName& name,
                                         std::span<const TokenId> tokens) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  if (!std::ranges::equal(entries_.at(found->second).tokens, tokens)) return std::nullopt;
  return found->second;
}

bool PrefixIndex::insert(BlockId block, const BlockName& parent, const BlockName& name,
                         std::span<const TokenId> tokens) {
  if (!by_name_.emplace(name, block).second) return false;
  by_parent_.emplace(parent, block);
  entries_[block] = {parent, name, {tokens.begin(), tokens.end()}};
  return true;
}

bool PrefixIndex::forget(BlockId block) {
  const auto found = entries_.find(block);
  if (found == entries_.end()) return false;
  by_name_.erase(found->second.name);
  by_parent_.erase({found->second.parent, block});
  entries_.erase(found);
  return true;
}

std::optional<Position> PrefixIndex::agreement(const BlockName& parent,
                                               std::span<const TokenId> tokens) const {
  std::optional<Position> best;
  for (auto it = by_parent_.lower_bound({parent, BlockId()});
       it != by_parent_.end() && it->first == parent; ++it) {
    const auto differs = std::ranges::mismatch(entries_.at(it->second).tokens, tokens).in2;
    best = std::max(best.value_or(0), static_cast<Position>(differs - tokens.begin()));
  }
  return best;
}

std::optional<BlockId> PrefixIndex::parent_of(BlockId block) const {
  const auto found = by_name_.find(entries_.at(block).parent);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

}  // namespace strata
