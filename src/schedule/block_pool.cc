#include "schedule/block_pool.h"

namespace strata {

BlockPool::BlockPool(std::int32_t blocks)
    : references_(static_cast<std::size_t>(blocks), 0),
      kept_(references_.size(), Kept::kNo),
      idle_at_(references_.size()) {
  free_.reserve(references_.size());
  for (std::int32_t i = blocks; i-- > 0;) free_.push_back(BlockId{i});
}

std::optional<BlockId> BlockPool::allocate() {
  if (free_blocks() == 0) return std::nullopt;
  if (free_.empty()) keep_no_more(has_spare() ? idle_spare_.front() : idle_.front());
  const BlockId block = free_.back();
  free_.pop_back();
  references_[index(block)] = 1;
  return block;
}

void BlockPool::add_reference(BlockId block) {
  if (references_[index(block)]++ == 0) idle_of(block).erase(idle_at_[index(block)]);
}

void BlockPool::release(BlockId block) {
  if (--references_[index(block)] > 0) return;
  if (kept(block)) {
    std::list<BlockId>& idle = idle_of(block);
    idle_at_[index(block)] = idle.insert(idle.end(), block);
  } else {
    free_.push_back(block);
  }
}

void BlockPool::keep(BlockId block, bool spare) {
  kept_[index(block)] = spare ? Kept::kSpare : Kept::kYes;
}

void BlockPool::keep_no_more(BlockId block) {
  if (kept(block) && references(block) == 0) {
    idle_of(block).erase(idle_at_[index(block)]);
    free_.push_back(block);
  }
  kept_[index(block)] = Kept::kNo;
}

Status BlockPool::check(std::span<const std::int32_t> expected_references) const {
  if (expected_references.size() != references_.size()) {
    return internal_error("counts for {} blocks given, the pool has {}", expected_references.size(),
                          references_.size());
  }
  std::vector<bool> unused(references_.size(), false);
  const auto see = [&](BlockId block, bool idle) -> Status {
    if (unused[index(block)]) return internal_error("block {} is free twice", block.value);
    unused[index(block)] = true;
    if (kept(block) != idle) return internal_error("block {} is in the wrong list", block.value);
    return {};
  };
  for (const BlockId block : free_) STRATA_TRY(see(block, false));
  for (const BlockId block : idle_) STRATA_TRY(see(block, true));
  for (const BlockId block : idle_spare_) STRATA_TRY(see(block, true));
  for (std::size_t i = 0; i < references_.size(); ++i) {
    if (references_[i] != expected_references[i]) {
      return internal_error("block {} counts {} references, tables hold {}", i, references_[i],
                            expected_references[i]);
    }
    if (unused[i] != (references_[i] == 0)) {
      return internal_error("block {} with {} references is {}", i, references_[i],
                            unused[i] ? "free" : "lost");
    }
  }
  return {};
}

}  // namespace strata
