// What each worker keeps to itself during a step.
#include <algorithm>

#include "device/cpu/cpu_segment.h"

namespace strata {
namespace {

struct Sizes {
  std::size_t pointers = 0;
  std::size_t floats = 0;
  std::size_t experts = 0;
  std::size_t routed = 0;
};

std::int64_t floats_for(const Graph& graph, const Op& op) {
  if (const auto* attention = std::get_if<AttentionOp>(&op))
    return attention_scores_size(kTileQueries) +
           attention_partial_size(kTileQueries, attention->value_size);
  if (const auto* route = std::get_if<RouteOp>(&op)) return 3 * std::int64_t{route->experts};
  if (const auto* scan = std::get_if<SsmScanOp>(&op)) return scan->state_size;
  if (const auto* delta = std::get_if<GatedDeltaOp>(&op)) return std::int64_t{3} * delta->key_size;
  if (const auto* rwkv = std::get_if<Rwkv7Op>(&op))
    return 5 * graph.value(rwkv->receptance).width / rwkv->heads;
  return 0;
}

Sizes scratch_sizes(const Graph& graph, const StepLimits& limits, bool reference) {
  Sizes sizes;
  std::int64_t floats = 0;
  for (const Op& op : graph.ops) floats = std::max(floats, floats_for(graph, op));
  std::int64_t experts = 0;
  for (const Weight& weight : graph.weights) {
    // The reference mode decodes a group of rows and interleaves it.
    if (reference && weight.role == WeightRole::kMatrix)
      floats = std::max(floats, 2 * kLanes * weight.columns);
    if (weight.slices > 1) experts = std::max(experts, weight.slices);
  }
  const auto routed = domain_rows(graph, RowDomain::kRouted, limits);
  sizes.pointers = static_cast<std::size_t>(
      std::max({std::int64_t{limits.rows}, std::int64_t{limits.logit_rows}, routed}));
  sizes.floats = static_cast<std::size_t>(floats);
  sizes.experts = static_cast<std::size_t>(experts) + 1;
  sizes.routed = static_cast<std::size_t>(routed);
  return sizes;
}

}  // namespace

Bytes worker_scratch_bytes(const Graph& graph, const StepLimits& limits, bool reference) {
  const Sizes s = scratch_sizes(graph, limits, reference);
  return s.pointers * (sizeof(void*) + sizeof(float*)) + s.floats * sizeof(float) +
         (s.experts + s.routed) * sizeof(std::int32_t);
}

WorkerScratch make_worker_scratch(const Graph& graph, const StepLimits& limits, bool reference) {
  const Sizes s = scratch_sizes(graph, limits, reference);
  WorkerScratch scratch;
  scratch.activations.resize(s.pointers);
  scratch.outs.resize(s.pointers);
  scratch.floats.resize(s.floats);
  scratch.expert_rows.resize(s.routed);
  scratch.expert_ends.reserve(s.experts);
  return scratch;
}

}  // namespace strata
