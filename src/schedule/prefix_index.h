// PrefixIndex: which blocks of one cache group hold what, so that sequences that begin alike share
// them. A full block is named by a strong hash of its tokens and the name of the block before it,
// after the automatic prefix caching of vLLM; see also Zheng et al., "SGLang" (2023). Not
// thread-safe.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

struct BlockName {
  std::array<std::uint8_t, 32> digest{};  // SHA-256
  auto operator<=>(const BlockName&) const = default;
};

// What a sequence's first block follows. Sequences of different salts share nothing.
BlockName root_name(std::string_view salt);
BlockName block_name(const BlockName& parent, std::span<const TokenId> tokens);

}  // namespace strata

template <>
struct std::hash<strata::BlockName> {
  std::size_t operator()(const strata::BlockName& name) const {
    std::size_t value = 0;
    std::memcpy(&value, name.digest.data(), sizeof value);
    return value;
  }
};

namespace strata {

class PrefixIndex {
 public:
  // The block of that name, if its tokens are these.
  std::optional<BlockId> find(const BlockName& name, std::span<const TokenId> tokens) const;

  // REQUIRES: the block has no name yet. Does nothing where another block has this one.
  bool insert(BlockId block, const BlockName& parent, const BlockName& name,
              std::span<const TokenId> tokens);

  // Whether the block had a name.
  bool forget(BlockId block);

  // How far `tokens` agree with the block behind `parent` that is most like them; nothing where
  // none is known.
  std::optional<Position> agreement(const BlockName& parent, std::span<const TokenId> tokens) const;

  bool contains(BlockId block) const { return entries_.contains(block); }
  std::int32_t size() const { return static_cast<std::int32_t>(entries_.size()); }

  // The block that comes before this one in its sequences, if it has a name and is there.
  std::optional<BlockId> parent_of(BlockId block) const;

 private:
  struct Entry {
    BlockName parent, name;
    std::vector<TokenId> tokens;
  };

  std::unordered_map<BlockId, Entry> entries_;
  std::unordered_map<BlockName, BlockId> by_name_;
  std::set<std::pair<BlockName, BlockId>> by_parent_;
};

}  // namespace strata
