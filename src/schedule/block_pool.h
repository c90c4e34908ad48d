// BlockPool: the block ids of one cache group, with reference counts. It knows nothing of what a
// block holds. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

class BlockPool {
 public:
  explicit BlockPool(std::int32_t blocks);

  // A block with one reference, or nothing when all are in use. The block released last comes
  // first; blocks never used come in ascending order.
  std::optional<BlockId> allocate();

  // REQUIRES: the block has a reference.
  void add_reference(BlockId block);
  void release(BlockId block);

  std::int32_t references(BlockId block) const { return references_[index(block)]; }
  std::int32_t blocks() const { return static_cast<std::int32_t>(references_.size()); }
  std::int32_t free_blocks() const { return static_cast<std::int32_t>(free_.size()); }

  // Whether the counts are these (one per block) and the free list holds exactly the others.
  Status check(std::span<const std::int32_t> expected_references) const;

 private:
  static std::size_t index(BlockId block) { return static_cast<std::size_t>(block.value); }

  std::vector<std::int32_t> references_;
  std::vector<BlockId> free_;  // the next to hand out is last
};

}  // namespace strata
