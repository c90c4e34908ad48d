#include <algorithm>

#include "base/checked.h"
#include "base/memory_ledger.h"
#include "placement/plan.h"

namespace strata {
namespace {

// Queues, token texts and what a chat template holds while it renders: at its limits under 60 MiB.
constexpr Bytes kWorkingBytes = 64 * kMiB;
constexpr Bytes kStagingBytes = 8 * kMiB;
constexpr std::int32_t kSmallestContext = 256;

// Blocks of one group that let `sequences` hold `context` tokens each. A windowed layer needs the
// window, the rows of one step and a partly used block at either end. A state takes one block,
// whatever the context, and a second one to be copied to: by a fork, a checkpoint or drafts.
std::int32_t blocks_for(const CacheGroupSpec& group, const DeviceCosts& costs,
                        const Workload& workload, std::int32_t context) {
  if (group.spec.state_size > 0) return 2 * workload.sequences;
  std::int64_t tokens = context;
  if (group.spec.window > 0)
    tokens = std::min<std::int64_t>(
        tokens, std::int64_t{group.spec.window} + workload.step.rows + 2 * costs.block_tokens);
  return static_cast<std::int32_t>(ceil_div<std::int64_t>(tokens, costs.block_tokens) *
                                   workload.sequences);
}

Result<Bytes> cache_bytes(const Graph& graph, const DeviceCosts& costs, const Workload& workload,
                          std::int32_t context) {
  Bytes total = 0;
  for (std::size_t g = 0; g < graph.cache_groups.size(); ++g) {
    const auto blocks = blocks_for(graph.cache_groups[g], costs, workload, context);
    const auto bytes = checked_mul<Bytes>(static_cast<Bytes>(blocks), costs.cache_block_bytes[g]);
    const auto sum = bytes ? checked_add<Bytes>(total, *bytes) : std::nullopt;
    if (!sum) return resource_exhausted("the cache's size does not fit 64 bits");
    total = *sum;
  }
  return total;
}

// Their sum is the plan's total.
std::string describe_parts(const PlacementPlan& plan) {
  std::string text =
      fmt::format("weights {}, cache {} for {} tokens, activations {}, staging {}, program {}",
                  human_bytes(plan.weights), human_bytes(plan.cache), plan.context,
                  human_bytes(plan.segment), human_bytes(plan.staging), human_bytes(plan.program));
  for (const auto& [owner, bytes] : plan.reserved)
    text += fmt::format(", {} {}", owner, human_bytes(bytes));
  return text;
}

Status refuse(const PlacementPlan& plan) {
  return resource_exhausted(
      "the model needs {} but the memory budget is {}: {}; ask for a smaller --context or a larger "
      "--memory",
      human_bytes(plan.total()), human_bytes(plan.budget), describe_parts(plan));
}

// The largest context, halving from `context`, whose cache fits.
Status fit_context(const Graph& graph, const DeviceCosts& costs, const Workload& workload,
                   PlacementPlan& plan) {
  const std::int32_t wanted = plan.context;
  while (true) {
    STRATA_ASSIGN(plan.cache, cache_bytes(graph, costs, workload, plan.context));
    if (plan.total() <= plan.budget) break;
    if (workload.context > 0 || plan.context <= kSmallestContext) return refuse(plan);
    plan.context = std::max(kSmallestContext, plan.context / 2);
  }
  if (plan.context < wanted)
    plan.notes.push_back(fmt::format("context reduced from {} to {} tokens to fit {}", wanted,
                                     plan.context, human_bytes(plan.budget)));
  return {};
}

// A sequence takes a state however short it is, and only where one was saved can a prompt that
// begins alike go on. So, where memory is left, every sequence gets more: one for so many tokens.
void add_states(const Graph& graph, const DeviceCosts& costs, const Workload& workload,
                PlacementPlan& plan) {
  constexpr std::int32_t kTokensPerState = 4096;
  constexpr Bytes kMost = 1 << 20;
  Bytes bytes = 0;  // of one in each group
  for (std::size_t g = 0; g < graph.cache_groups.size(); ++g)
    if (graph.cache_groups[g].spec.state_size > 0) bytes += costs.cache_block_bytes[g];
  if (bytes == 0) return;
  const Bytes wanted = static_cast<Bytes>(workload.sequences) *
                       static_cast<Bytes>(ceil_div<std::int64_t>(plan.context, kTokensPerState));
  const Bytes states = std::min({wanted, (plan.budget - plan.total()) / bytes, kMost});
  if (states == wanted) plan.state_tokens = kTokensPerState;
  plan.cache += states * bytes;
  for (std::size_t g = 0; g < graph.cache_groups.size(); ++g)
    if (graph.cache_groups[g].spec.state_size > 0)
      plan.cache_blocks[g] += static_cast<std::int32_t>(states);
}

}  // namespace

Result<Bytes> weight_bytes(const Weight& weight) {
  const auto info = format_info(weight.format);
  if (!info) return internal_error("tensor '{}' has no known format", weight.name);
  const auto columns = static_cast<Bytes>(weight.columns);
  const auto rows =
      checked_mul<Bytes>(static_cast<Bytes>(weight.rows), static_cast<Bytes>(weight.slices));
  const Bytes row = weight.role == WeightRole::kVector
                        ? columns * sizeof(float)
                        : columns / info->block_elements * info->block_bytes;
  const auto bytes = rows ? checked_mul<Bytes>(*rows, row) : std::nullopt;
  const auto aligned = bytes ? checked_align_up<Bytes>(*bytes, 64) : std::nullopt;
  if (!aligned) return corrupt("tensor '{}' does not fit 64 bits", weight.name);
  return *aligned;
}

Result<PlacementPlan> make_plan(const Graph& graph, const Workload& workload,
                                const DeviceCosts& costs, Bytes budget) {
  PlacementPlan plan;
  plan.budget = budget;
  plan.program = workload.program + kWorkingBytes;
  plan.reserved = workload.reserved;
  plan.staging = kStagingBytes;
  plan.segment = costs.segment_bytes;
  plan.step = workload.step;
  for (const Weight& weight : graph.weights) {
    STRATA_ASSIGN(const Bytes bytes, weight_bytes(weight));
    plan.weights += bytes;
  }
  if (graph.max_positions > 0 && workload.context > graph.max_positions)
    return invalid_argument(
        "a context of {} tokens is asked for, but the model has embeddings for {} positions",
        workload.context, graph.max_positions);
  if (workload.context > graph.context_length)
    plan.notes.push_back(fmt::format("the model was made for {} tokens; answers beyond may be poor",
                                     graph.context_length));
  plan.context = workload.context > 0 ? workload.context : default_context(graph);
  STRATA_TRY(fit_context(graph, costs, workload, plan));
  for (const CacheGroupSpec& group : graph.cache_groups)
    plan.cache_blocks.push_back(blocks_for(group, costs, workload, plan.context));
  add_states(graph, costs, workload, plan);
  return plan;
}

std::string describe(const PlacementPlan& plan) {
  return fmt::format("memory: {}, total {} of {}", describe_parts(plan), human_bytes(plan.total()),
                     human_bytes(plan.budget));
}

Bytes PlacementPlan::total() const {
  Bytes sum = program + weights + staging + segment + cache;
  for (const auto& [owner, bytes] : reserved) sum += bytes;
  return sum;
}

}  // namespace strata
