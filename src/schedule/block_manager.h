// BlockManager: the cache groups' pools and the tables that map a sequence's positions to blocks.
// Sequences share blocks after a fork; whoever writes to a shared one first gets a copy.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "schedule/block_pool.h"
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

class BlockManager {
 public:
  // REQUIRES: sizes are positive, windows not negative.
  explicit BlockManager(std::vector<CacheGroup> groups);

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

  // Whether a sequence's tables cover exactly the positions below `end` that its next rows, from
  // `computed` on, may see or write.
  Status check_cover(const BlockTables& tables, Position computed, Position end) const;

  // Whether reference counts equal the entries of `all`, the tables of every sequence.
  Status check_references(std::span<const BlockTables* const> all) const;

 private:
  std::int32_t first_visible_block(std::size_t group, Position computed) const;
  bool must_copy(std::size_t group, const BlockTable& table, Position computed) const;

  std::vector<CacheGroup> groups_;
  std::vector<BlockPool> pools_;
};

}  // namespace strata
