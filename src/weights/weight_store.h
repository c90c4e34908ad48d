// WeightStore: the bytes of a model's weights in the tiers the plan gives them. Every weight is
// resident on one device.
#pragma once

#include <functional>
#include <vector>

#include "base/memory_ledger.h"
#include "device/device.h"
#include "gguf/manifest.h"
#include "placement/plan.h"

namespace strata {

// Called while weights load, from the loading thread; returns false to stop the load.
using LoadProgress = std::function<bool(Bytes done, Bytes total)>;

class WeightStore {
 public:
  // Reads every weight of the graph from the manifest's files. Errors name the file and tensor;
  // kCancelled when `progress` says stop.
  static Result<std::unique_ptr<WeightStore>> load(const ModelManifest& manifest,
                                                   const Graph& graph, const PlacementPlan& plan,
                                                   Device& device, const LoadProgress& progress);

  const std::vector<WeightView>& views() const { return views_; }  // by WeightId
  Bytes bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
  std::vector<WeightView> views_;
};

}  // namespace strata
