#include "schedule/block_pool.h"

namespace strata {

BlockPool::BlockPool(std::int32_t blocks) : references_(static_cast<std::size_t>(blocks), 0) {
  free_.reserve(references_.size());
  for (std::int32_t i = blocks; i-- > 0;) free_.push_back(BlockId{i});
}

std::optional<BlockId> BlockPool::allocate() {
  if (free_.empty()) return std::nullopt;
  const BlockId block = free_.back();
  free_.pop_back();
  references_[index(block)] = 1;
  return block;
}

void BlockPool::add_reference(BlockId block) { ++references_[index(block)]; }

void BlockPool::release(BlockId block) {
  if (--references_[index(block)] == 0) free_.push_back(block);
}

Status BlockPool::check(std::span<const std::int32_t> expected_references) const {
  if (expected_references.size() != references_.size()) {
    return internal_error("counts for {} blocks given, the pool has {}", expected_references.size(),
                          references_.size());
  }
  std::vector<bool> is_free(references_.size(), false);
  for (const BlockId block : free_) {
    if (is_free[index(block)]) return internal_error("block {} is free twice", block.value);
    is_free[index(block)] = true;
  }
  for (std::size_t i = 0; i < references_.size(); ++i) {
    if (references_[i] != expected_references[i]) {
      return internal_error("block {} counts {} references, tables hold {}", i, references_[i],
                            expected_references[i]);
    }
    if (is_free[i] != (references_[i] == 0)) {
      return internal_error("block {} with {} references is {}", i, references_[i],
                            is_free[i] ? "free" : "lost");
    }
  }
  return {};
}

}  // namespace strata
