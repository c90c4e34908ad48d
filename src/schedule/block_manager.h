// BlockManager: the cache groups' pools and the tables that map a sequence's positions to blocks.
// Sequences share blocks after a fork, or where they begin alike; whoever writes to a shared one
// first gets a copy. Not thread-safe.
//
// The prefix cache: full blocks have names (PrefixIndex) and stay when no sequence holds them,
// until a block is needed and no other is free; then the one let go longest ago is taken, and as
// sequences let go of their blocks from the end, this is a leaf. So the cache never takes memory
// from a sequence. A windowed group serves a position if the blocks of the window before it are
// there. A group of states serves the positions where a state was saved, each at the end of a full
// block.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "schedule/block_pool.h"
#include "schedule/prefix_index.h"
#include "schedule/step_plan.h"

namespace strata {

// Entry i holds positions [i * block_tokens, (i + 1) * block_tokens); entries below `first_live`
// have left the window and are invalid.
struct BlockTable {
  std::vector<BlockId> blocks;
  std::int32_t first_live = 0;

  std::int32_t size() const { return static_cast<std::int32_t>(blocks.size()); }
  std::int32_t live() const { return size() - first_live; }
};
using BlockTables = std::vector<BlockTable>;  // one per cache group

// How often some tables hold each block of a group.
using BlockReferences = std::unordered_map<BlockId, std::int32_t>;

// Tokens and the names of the first full blocks of them.
struct NamedTokens {
  const BlockName& root;
  std::span<const TokenId> tokens;
  std::span<const BlockName> names;
};

class BlockManager {
 public:
  // `prefix_tokens`: those of a named block; 0: there is no prefix cache. REQUIRES: sizes are
  // positive, windows not negative; all groups but states have blocks of `prefix_tokens`, if not 0.
  explicit BlockManager(std::vector<CacheGroup> groups, std::int32_t prefix_tokens = 0);

  std::span<const CacheGroup> groups() const { return groups_; }
  const BlockPool& pool(std::size_t group) const { return pools_[group]; }
  BlockTables empty_tables() const { return BlockTables(groups_.size()); }

  // Blocks that `known` positions computed one by one hold at most, by one sequence alone.
  std::int64_t peak_blocks(std::size_t group, Position known) const;

  // An error with the numbers if a sequence of `known` positions exceeds a whole pool.
  Status fits_alone(Position known) const;

  // How many of the `wanted` rows from `computed` on the free blocks allow.
  Position rows_that_fit(const BlockTables& tables, Position computed, Position wanted) const;

  // Makes [computed, computed + rows) writable; copies of shared blocks are appended to `copies`.
  // REQUIRES: rows <= rows_that_fit(tables, computed, rows).
  void reserve(BlockTables& tables, Position computed, Position rows,
               std::vector<BlockCopy>& copies);

  // Releases what lies behind `computed` or has left the window of every later row.
  void trim(BlockTables& tables, Position computed);

  void release(BlockTables& tables);

  // Tables on the same blocks, each with one more reference.
  BlockTables share(const BlockTables& tables);

  // The same for the groups of states alone; the other tables are empty.
  BlockTables share_states(const BlockTables& tables);
  bool has_states() const;
  // Whether a sequence that shares its states finds blocks to copy them to.
  bool can_copy_states() const;
  // Puts shared states back in the place of the tables' own.
  void restore_states(BlockTables& tables, BlockTables& saved);

  // Whether trim() alone leaves what rows from `computed` on see: no state and no window moved on.
  bool can_trim(const BlockTables& tables, Position computed) const;

  bool has_prefixes() const { return prefix_tokens_ > 0; }
  std::int32_t prefix_tokens() const { return prefix_tokens_; }

  // The last position, at most `limit`, from which rows can be computed on cached blocks alone.
  Position cached_prefix(const NamedTokens& sequence, Position limit) const;

  // Tables on these blocks. REQUIRES: `position` is one that cached_prefix() gave.
  BlockTables share_prefix(const NamedTokens& sequence, Position position);

  static BlockReferences references_in(std::size_t group,
                                       std::span<const BlockTables* const> tables);
  // Blocks that would be free without these references.
  std::int64_t held_by_these_alone(std::size_t group, const BlockReferences& references) const;
  // How many of the blocks before `position` somebody holds, besides those references, so that
  // sharing takes none of the free ones; of a group whose blocks all stay.
  std::int64_t held_blocks(std::size_t group, const NamedTokens& sequence, Position position,
                           const BlockReferences& references) const;

  // Whether the block of keys and values behind the first `blocks` ones is there.
  bool has_block(const NamedTokens& sequence, std::size_t blocks) const;

  // Names the blocks `from` to `to` of the tables. One that another block holds already goes, and
  // that one takes its place.
  void name_blocks(BlockTables& tables, const NamedTokens& sequence, std::size_t from,
                   std::size_t to);

  // Saves the states behind the last named token; whoever writes to them next gets a copy, if a
  // block is left. `spare`: such a copy takes the place of no saved state that is not spare itself,
  // and what is saved gives way first, until it has served a sequence.
  void save_states(const BlockTables& tables, const NamedTokens& sequence, bool spare);
  // Gives them up, unless a sequence holds them.
  void forget_states(const NamedTokens& sequence);

  // The first token that differs from the longest cached prefix; -1 where none is known to.
  Position first_difference(const NamedTokens& sequence) const;

  std::int64_t evictions() const { return evictions_; }

  // Whether a sequence's tables cover exactly the positions below `end` that its next rows, from
  // `computed` on, may see or write.
  Status check_cover(const BlockTables& tables, Position computed, Position end) const;

  // Whether reference counts equal the entries of `all`, the tables of every sequence, the kept
  // blocks are the named ones, and those without a reference will be taken from the leaves.
  Status check_references(std::span<const BlockTables* const> all) const;

 private:
  std::int32_t first_visible_block(std::size_t group, Position computed) const;
  bool must_copy(std::size_t group, const BlockTable& table, Position computed) const;
  BlockId allocate(std::size_t group);
  void make_writable(std::size_t group, BlockId& block, std::vector<BlockCopy>& copies);
  std::optional<BlockId> find(std::size_t group, const NamedTokens& sequence,
                              std::size_t block) const;
  Position served(std::size_t group, const NamedTokens& sequence, Position position) const;
  Status check_index(std::size_t group) const;

  std::vector<CacheGroup> groups_;
  std::vector<BlockPool> pools_;
  std::int32_t prefix_tokens_;
  std::vector<PrefixIndex> index_;  // by group
  std::int64_t evictions_ = 0;
};

}  // namespace strata
