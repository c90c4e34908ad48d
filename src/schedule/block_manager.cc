#include "schedule/block_manager.h"

#include <algorithm>
#include <utility>

namespace strata {

BlockManager::BlockManager(std::vector<CacheGroup> groups, std::int32_t prefix_tokens)
    : groups_(std::move(groups)), prefix_tokens_(prefix_tokens), index_(groups_.size()) {
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

BlockId BlockManager::allocate(std::size_t group) {
  const BlockId block = pools_[group].allocate().value();
  if (index_[group].forget(block)) ++evictions_;
  return block;
}

void BlockManager::make_writable(std::size_t group, BlockId& block,
                                 std::vector<BlockCopy>& copies) {
  BlockPool& pool = pools_[group];
  const bool shared = pool.references(block) > 1;
  if (!shared && !pool.kept(block)) return;
  // Of a full block the last row alone is written again, but a state moves on.
  const bool has_room = pool.spare(block) ? pool.has_spare() : pool.free_blocks() > 0;
  if (shared || (groups_[group].is_state() && has_room)) {
    const BlockId own = allocate(group);
    copies.push_back({static_cast<std::int32_t>(group), block, own});
    pool.release(block);
    block = own;
  } else {
    index_[group].forget(block);
    pool.keep_no_more(block);
  }
}

void BlockManager::reserve(BlockTables& tables, Position computed, Position rows,
                           std::vector<BlockCopy>& copies) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockTable& table = tables[g];
    const std::int32_t block_tokens = groups_[g].block_tokens;
    if (computed % block_tokens != 0)
      make_writable(g, table.blocks[static_cast<std::size_t>(computed / block_tokens)], copies);
    const std::int64_t end = std::int64_t{computed} + rows;
    while (std::int64_t{table.size()} * block_tokens < end) table.blocks.push_back(allocate(g));
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
    // From the end, so that no cached block is evicted before those behind it; but of a window the
    // end is what others can go on from.
    const bool from_start = groups_[g].window > 0;
    for (std::int32_t i = tables[g].first_live; i < tables[g].size(); ++i) {
      const std::int32_t at = from_start ? i : tables[g].size() - 1 - (i - tables[g].first_live);
      pools_[g].release(tables[g].blocks[static_cast<std::size_t>(at)]);
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

// --- The prefix cache ---

std::optional<BlockId> BlockManager::find(std::size_t group, const NamedTokens& sequence,
                                          std::size_t block) const {
  if (block >= sequence.names.size()) return std::nullopt;
  const auto tokens = static_cast<std::size_t>(prefix_tokens_);
  return index_[group].find(sequence.names[block], sequence.tokens.subspan(block * tokens, tokens));
}

// `position`, or a lower one that the group may serve where it does not serve this one.
Position BlockManager::served(std::size_t group, const NamedTokens& sequence,
                              Position position) const {
  if (groups_[group].is_state()) {
    const Position blocks = position / prefix_tokens_;
    if (blocks > 0 && !find(group, sequence, static_cast<std::size_t>(blocks) - 1))
      return (blocks - 1) * prefix_tokens_;
    return blocks * prefix_tokens_;
  }
  for (std::int32_t i = first_visible_block(group, position);
       i < ceil_div(position, prefix_tokens_); ++i) {
    if (!find(group, sequence, static_cast<std::size_t>(i))) return i * prefix_tokens_;
  }
  return position;
}

Position BlockManager::cached_prefix(const NamedTokens& sequence, Position limit) const {
  if (!has_prefixes()) return 0;
  Position position = limit;
  for (Position before = -1; before != position;) {
    before = position;
    for (std::size_t g = 0; g < groups_.size(); ++g) position = served(g, sequence, position);
  }
  return position;
}

BlockTables BlockManager::share_prefix(const NamedTokens& sequence, Position position) {
  BlockTables tables = empty_tables();
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    BlockTable& table = tables[g];
    const std::int32_t end = ceil_div(position, prefix_tokens_);
    if (groups_[g].is_state()) {
      if (end > 0) table.blocks = {find(g, sequence, static_cast<std::size_t>(end) - 1).value()};
    } else {
      table.first_live = std::min(first_visible_block(g, position), end);
      table.blocks.resize(static_cast<std::size_t>(table.first_live));
      for (std::int32_t i = table.first_live; i < end; ++i)
        table.blocks.push_back(find(g, sequence, static_cast<std::size_t>(i)).value());
    }
  }
  tables = share(tables);
  // A state that served once is one that others begin with.
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].is_state() && position > 0) pools_[g].keep(tables[g].blocks.front());
  }
  return tables;
}

BlockReferences BlockManager::references_in(std::size_t group,
                                            std::span<const BlockTables* const> tables) {
  BlockReferences references;
  for (const BlockTables* const each : tables)
    for (const BlockId block : (*each)[group].blocks)
      if (block.valid()) ++references[block];
  return references;
}

std::int64_t BlockManager::held_by_these_alone(std::size_t group,
                                               const BlockReferences& references) const {
  return std::ranges::count_if(references, [&](const auto& each) {
    return pools_[group].references(each.first) == each.second;
  });
}

std::int64_t BlockManager::held_blocks(std::size_t group, const NamedTokens& sequence,
                                       Position position, const BlockReferences& references) const {
  if (groups_[group].is_state() || groups_[group].window > 0) return 0;
  std::int64_t held = 0;
  for (Position i = 0; i < position / prefix_tokens_; ++i) {
    const auto block = find(group, sequence, static_cast<std::size_t>(i));
    if (!block) continue;
    const auto known = references.find(*block);
    if (pools_[group].references(*block) > (known == references.end() ? 0 : known->second)) ++held;
  }
  return held;
}

bool BlockManager::has_block(const NamedTokens& sequence, std::size_t blocks) const {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].is_state()) return find(g, sequence, blocks).has_value();
  }
  return false;
}

void BlockManager::name_blocks(BlockTables& tables, const NamedTokens& sequence, std::size_t from,
                               std::size_t to) {
  const auto tokens = static_cast<std::size_t>(prefix_tokens_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].is_state()) continue;
    for (std::size_t i = from; i < to; ++i) {
      BlockId& block = tables[g].blocks[i];
      if (!block.valid()) continue;
      if (const auto known = find(g, sequence, i)) {
        if (*known == block) continue;
        pools_[g].add_reference(*known);
        pools_[g].release(block);
        block = *known;
      } else if (index_[g].insert(block, i == 0 ? sequence.root : sequence.names[i - 1],
                                  sequence.names[i], sequence.tokens.subspan(i * tokens, tokens))) {
        pools_[g].keep(block);
      }
    }
  }
}

void BlockManager::save_states(const BlockTables& tables, const NamedTokens& sequence, bool spare) {
  const std::size_t last = sequence.names.size() - 1;
  const auto tokens = static_cast<std::size_t>(prefix_tokens_);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].is_state() || find(g, sequence, last)) continue;
    const BlockId block = tables[g].blocks.front();
    if (index_[g].insert(block, last == 0 ? sequence.root : sequence.names[last - 1],
                         sequence.names[last], sequence.tokens.subspan(last * tokens, tokens)))
      pools_[g].keep(block, spare);
  }
}

void BlockManager::forget_states(const NamedTokens& sequence) {
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (!groups_[g].is_state()) continue;
    const auto block = find(g, sequence, sequence.names.size() - 1);
    if (!block || pools_[g].references(*block) > 0) continue;
    index_[g].forget(*block);
    pools_[g].keep_no_more(*block);
  }
}

Position BlockManager::first_difference(const NamedTokens& sequence) const {
  for (std::size_t g = 0; has_prefixes() && g < groups_.size(); ++g) {
    if (groups_[g].is_state()) continue;
    std::size_t known = sequence.names.size();
    while (known > 0 && !find(g, sequence, known - 1)) --known;
    const std::size_t first = known * static_cast<std::size_t>(prefix_tokens_);
    const auto agreed = index_[g].agreement(known == 0 ? sequence.root : sequence.names[known - 1],
                                            sequence.tokens.subspan(first));
    if (!agreed || first + static_cast<std::size_t>(*agreed) == sequence.tokens.size()) return -1;
    return static_cast<Position>(first) + *agreed;
  }
  return -1;
}

// --- Checks ---

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
    const std::int32_t block_tokens = groups_[g].block_tokens;
    if (end == computed || computed % block_tokens == 0) continue;
    const BlockId written = table.blocks[static_cast<std::size_t>(computed / block_tokens)];
    if (pools_[g].references(written) > 1 || pools_[g].kept(written))
      return internal_error("group {}: rows are written to a shared block", g);
  }
  return {};
}

// Of two blocks without a reference, one behind the other, the one behind is taken first.
Status BlockManager::check_index(std::size_t group) const {
  const BlockPool& pool = pools_[group];
  std::int32_t kept = 0;
  for (std::int32_t i = 0; i < pool.blocks(); ++i) {
    kept += pool.kept(BlockId{i}) ? 1 : 0;
    if (pool.kept(BlockId{i}) != index_[group].contains(BlockId{i}))
      return internal_error("block {} is kept without a name, or has one and is not kept", i);
  }
  if (kept != index_[group].size())
    return internal_error("{} names for {} blocks", index_[group].size(), kept);
  if (groups_[group].is_state() || groups_[group].window > 0) return {};
  std::set<BlockId> before;
  for (const BlockId block : pool.idle()) {
    const auto parent = index_[group].parent_of(block);
    if (parent && before.contains(*parent))
      return internal_error("block {} will be taken before {} that follows it", parent->value,
                            block.value);
    before.insert(block);
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
    Status status = pools_[g].check(references);
    if (status.ok()) status = check_index(g);
    if (!status.ok()) return status.with_context(fmt::format("cache group {}", g));
  }
  return {};
}

}  // namespace strata
