#include "schedule/block_manager.h"

#include <algorithm>
#include <utility>

namespace strata {

BlockManager::BlockManager(std::vector<CacheGroup> groups) : groups_(std::move(groups)) {
  for (const CacheGroup& group : groups_) pools_.emplace_back(group.blocks);
}

std::int64_t BlockManager::peak_blocks(std::size_t group, Position known) const {
  const std::int64_t block_tokens = groups_[group].block_tokens;
  const std::int64_t all = ceil_div<std::int64_t>(known, block_tokens);
  if (groups_[group].window == 0) return all;
  // A window that begins at the last slot of a block touches the most blocks.
  return std::min(all, ceil_div<std::int64_t>(groups_[group].window - 1, block_tokens) + 1);
}

Status BlockManager::fits_alone(Position known) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::int64_t needed = peak_blocks(g, known);
    if (needed > groups_[g].blocks) {
      return resource_exhausted(
          "{} tokens need {} cache blocks of {} tokens, but the pool has only {}; shorten the "
          "sequence or give the cache more memory",
          known, needed, groups_[g].block_tokens, groups_[g].blocks);
    }
  }
  return {};
}

// Only the block that holds `computed` can be both written to and shared: later ones are new.
bool BlockManager::must_copy(std::size_t group, const BlockTable& table, Position computed) const {
  const std::int32_t block_tokens = groups_[group].block_tokens;
  if (computed % block_tokens == 0) return false;
  return pools_[group].references(table.blocks[static_cast<std::size_t>(computed / block_tokens)]) >
         1;
}

Position BlockManager::rows_that_fit(const BlockTables& tables, Position computed,
                                     Position wanted) const {
  std::int64_t rows = wanted;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const std::int64_t available =
        pools_[g].free_blocks() - (must_copy(g, tables[g], computed) ? 1 : 0);
    if (available < 0) return 0;
    const std::int64_t end = (tables[g].size() + available) * groups_[g].block_tokens;
    rows = std::min(rows, end - computed);
  }
  return static_cast<Position>(rows);
}

void BlockManager::reserve(BlockTables& tables, Position computed, Position rows,
                           std::vector<BlockCopy>& copies) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockTable& table = tables[g];
    const std::int32_t block_tokens = groups_[g].block_tokens;
    if (must_copy(g, table, computed)) {
      BlockId& shared = table.blocks[static_cast<std::size_t>(computed / block_tokens)];
      const BlockId own = pools_[g].allocate().value();
      copies.push_back({static_cast<std::int32_t>(g), shared, own});
      pools_[g].release(shared);
      shared = own;
    }
    const std::int64_t end = std::int64_t{computed} + rows;
    while (std::int64_t{table.size()} * block_tokens < end) {
      table.blocks.push_back(pools_[g].allocate().value());
    }
  }
}

std::int32_t BlockManager::first_visible_block(std::size_t group, Position computed) const {
  const CacheGroup& g = groups_[group];
  if (g.window == 0) return 0;
  return std::max(0, computed - g.window + 1) / g.block_tokens;
}

void BlockManager::trim(BlockTables& tables, Position computed) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockTable& table = tables[g];
    const std::int64_t covering =
        ceil_div(std::int64_t{computed}, std::int64_t{groups_[g].block_tokens});
    while (table.size() > covering) {
      pools_[g].release(table.blocks.back());
      table.blocks.pop_back();
    }
    const std::int32_t visible = std::min(first_visible_block(g, computed), table.size());
    for (; table.first_live < visible; ++table.first_live) {
      BlockId& block = table.blocks[static_cast<std::size_t>(table.first_live)];
      pools_[g].release(block);
      block = BlockId();
    }
  }
}

void BlockManager::release(BlockTables& tables) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    // From the end, so that the next owner of the blocks gets them in ascending order again.
    for (std::int32_t i = tables[g].size(); i-- > tables[g].first_live;) {
      pools_[g].release(tables[g].blocks[static_cast<std::size_t>(i)]);
    }
    tables[g] = BlockTable();
  }
}

BlockTables BlockManager::share(const BlockTables& tables) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    for (std::int32_t i = tables[g].first_live; i < tables[g].size(); ++i) {
      pools_[g].add_reference(tables[g].blocks[static_cast<std::size_t>(i)]);
    }
  }
  return tables;
}

BlockTables BlockManager::share_states(const BlockTables& tables) {
  BlockTables states = empty_tables();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].is_state()) states[g] = tables[g];
  }
  return share(states);
}

bool BlockManager::has_states() const {
  return std::ranges::any_of(groups_, &CacheGroup::is_state);
}

bool BlockManager::can_copy_states() const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].is_state() && pools_[g].free_blocks() == 0) return false;
  }
  return true;
}

void BlockManager::restore_states(BlockTables& tables, BlockTables& saved) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].is_state()) std::swap(tables[g], saved[g]);
  }
  release(saved);
}

bool BlockManager::can_trim(const BlockTables& tables, Position computed) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].is_state() && computed > 0) return false;
    if (tables[g].first_live > first_visible_block(g, computed)) return false;
  }
  return true;
}

Status BlockManager::check_cover(const BlockTables& tables, Position computed, Position end) const {
  if (tables.size() != groups_.size()) return internal_error("{} block tables", tables.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const BlockTable& table = tables[g];
    const std::int64_t covering =
        ceil_div(std::int64_t{end}, std::int64_t{groups_[g].block_tokens});
    if (table.size() != covering) {
      return internal_error("group {}: {} table entries for {} positions", g, table.size(), end);
    }
    if (table.first_live != std::min(first_visible_block(g, computed), table.size())) {
      return internal_error("group {}: entries live from {} at position {}", g, table.first_live,
                            computed);
    }
    for (std::int32_t i = 0; i < table.size(); ++i) {
      if (table.blocks[static_cast<std::size_t>(i)].valid() != (i >= table.first_live)) {
        return internal_error("group {}: entry {} is on the wrong side of the window", g, i);
      }
    }
    if (end > computed && must_copy(g, table, computed)) {
      return internal_error("group {}: rows are written to a shared block", g);
    }
  }
  return {};
}

Status BlockManager::check_references(std::span<const BlockTables* const> all) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    std::vector<std::int32_t> references(static_cast<std::size_t>(groups_[g].blocks), 0);
    for (const BlockTables* tables : all) {
      for (const BlockId block : (*tables)[g].blocks) {
        if (!block.valid()) continue;
        if (block.value >= groups_[g].blocks) {
          return internal_error("group {}: block {} does not exist", g, block.value);
        }
        ++references[static_cast<std::size_t>(block.value)];
      }
    }
    if (Status status = pools_[g].check(references); !status.ok()) {
      return status.with_context(fmt::format("cache group {}", g));
    }
  }
  return {};
}

}  // namespace strata
