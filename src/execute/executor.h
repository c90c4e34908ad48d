// Executor: binds a step plan to the graph on the plan's device. Chooses nothing.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/device.h"
#include "placement/plan.h"
#include "schedule/step_plan.h"
#include "weights/weight_store.h"

namespace strata {

// The graph's output, one row per row that wanted it, in the step plan's order. The memory is the
// executor's and lasts until its next run.
struct LogitRows {
  std::span<const float> values;
  std::int32_t width = 0;
  std::int32_t count() const {
    return static_cast<std::int32_t>(values.size()) / std::max(1, width);
  }
  std::span<const float> row(std::int32_t index) const {
    const auto elements = static_cast<std::size_t>(width);
    return values.subspan(static_cast<std::size_t>(index) * elements, elements);
  }
};

// One call at a time. The graph, weights and device must outlive it.
class Executor {
 public:
  static Result<std::unique_ptr<Executor>> create(const Graph& graph, const PlacementPlan& plan,
                                                  const WeightStore& weights,
                                                  CacheFormat cache_format, Device& device);

  // What the scheduler has to manage: one entry per cache group of the graph.
  std::span<const CacheGroup> cache_groups() const { return groups_; }

  Result<LogitRows> run(const StepPlan& plan);

 private:
  Executor(const Graph& graph, Device& device) : graph_(graph), device_(device) {}

  const Graph& graph_;
  Device& device_;
  std::vector<Buffer> cache_buffers_;
  std::vector<CacheView> caches_;
  std::vector<CacheGroup> groups_;
  std::unique_ptr<Segment> segment_;

  // The step's inputs, kept for their capacity.
  std::vector<TokenId> tokens_;
  std::vector<StepSlice> slices_;
  std::vector<std::int32_t> logit_rows_;
};

}  // namespace strata
