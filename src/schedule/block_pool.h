// BlockPool: the block ids of one cache group, with reference counts. It knows nothing of what a
// block holds. Not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/units.h"

namespace strata {

class BlockPool {
 public:
  explicit BlockPool(std::int32_t blocks);

  // A block with one reference, or nothing when all are in use. Of the free ones the block released
  // last comes first; blocks never used come in ascending order. Without a free one, the kept block
  // that has been without a reference for longest, one of the spare ones if there is any; it is
  // kept no more.
  std::optional<BlockId> allocate();

  // REQUIRES: the block has a reference, or is kept.
  void add_reference(BlockId block);
  // REQUIRES: the block has a reference.
  void release(BlockId block);

  // A kept block that loses its last reference is not free, but one of those that allocate() takes
  // when no other is left, and of these the `spare` ones first. REQUIRES: the block has a
  // reference.
  void keep(BlockId block, bool spare = false);
  void keep_no_more(BlockId block);
  bool kept(BlockId block) const { return kept_[index(block)] != Kept::kNo; }
  bool spare(BlockId block) const { return kept_[index(block)] == Kept::kSpare; }

  std::int32_t references(BlockId block) const { return references_[index(block)]; }
  std::int32_t blocks() const { return static_cast<std::int32_t>(references_.size()); }
  // Blocks that allocate() can give, and how many of them are kept.
  std::int32_t free_blocks() const {
    return static_cast<std::int32_t>(free_.size()) + idle_blocks();
  }
  std::int32_t idle_blocks() const {
    return static_cast<std::int32_t>(idle_.size() + idle_spare_.size());
  }
  // Whether allocate() gives one without taking a kept block that is not spare.
  bool has_spare() const { return !free_.empty() || !idle_spare_.empty(); }
  // Kept blocks without a reference but for the spare ones, the next to be taken first.
  const std::list<BlockId>& idle() const { return idle_; }

  // Whether the counts are these (one per block), the free list holds exactly the others that are
  // not kept, and the idle list those that are.
  Status check(std::span<const std::int32_t> expected_references) const;

 private:
  enum class Kept : std::uint8_t { kNo, kSpare, kYes };

  static std::size_t index(BlockId block) { return static_cast<std::size_t>(block.value); }
  // Where the block is while it is idle.
  std::list<BlockId>& idle_of(BlockId block) { return spare(block) ? idle_spare_ : idle_; }

  std::vector<std::int32_t> references_;
  std::vector<Kept> kept_;
  std::vector<BlockId> free_;  // the next to hand out is last
  std::list<BlockId> idle_, idle_spare_;
  std::vector<std::list<BlockId>::iterator> idle_at_;  // by block, where it is idle
};

}  // namespace strata
