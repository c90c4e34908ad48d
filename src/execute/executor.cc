#include "execute/executor.h"

namespace strata {

Result<std::unique_ptr<Executor>> Executor::create(const Graph& graph, const PlacementPlan& plan,
                                                   const WeightStore& weights,
                                                   CacheFormat cache_format, Device& device) {
  std::unique_ptr<Executor> executor(new Executor(graph, device));
  for (std::size_t g = 0; g < graph.cache_groups.size(); ++g) {
    const CacheGroupSpec& group = graph.cache_groups[g];
    const Bytes block_bytes = cache_block_bytes(group, cache_format);
    const std::int32_t blocks = plan.cache_blocks[g];
    STRATA_ASSIGN(Buffer buffer, device.allocate(static_cast<Bytes>(blocks) * block_bytes));
    executor->caches_.push_back({buffer.data(), block_bytes, blocks});
    executor->cache_buffers_.push_back(std::move(buffer));
    executor->groups_.push_back(
        {group.spec.state_size > 0 ? kEveryPosition : kBlockTokens, blocks, group.spec.window});
  }
  STRATA_ASSIGN(executor->segment_, device.bind({&graph, weights.views(), executor->caches_,
                                                 cache_format, plan.step, plan.context}));
  return executor;
}

Result<LogitRows> Executor::run(const StepPlan& plan) {
  for (const BlockCopy& copy : plan.copies)
    STRATA_TRY(
        device_.copy_block(caches_[static_cast<std::size_t>(copy.group)], copy.from, copy.to));
  tokens_.clear();
  slices_.clear();
  logit_rows_.clear();
  for (const SequenceSlice& slice : plan.slices) {
    const auto first_row = static_cast<std::int32_t>(tokens_.size());
    tokens_.insert(tokens_.end(), slice.tokens.begin(), slice.tokens.end());
    for (std::size_t i = 0; i < slice.wants_logits.size(); ++i)
      if (slice.wants_logits[i] != 0)
        logit_rows_.push_back(first_row + static_cast<std::int32_t>(i));
    slices_.push_back({first_row, static_cast<std::int32_t>(slice.tokens.size()), slice.first,
                       slice.block_tables});
  }
  STRATA_ASSIGN(const auto values, device_.run(*segment_, {tokens_, slices_, logit_rows_}));
  return LogitRows{values, graph_.output_width()};
}

}  // namespace strata
