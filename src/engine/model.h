// A model with everything that computes it: the parts the engine's loop drives.
#pragma once

#include "base/memory_ledger.h"
#include "engine/engine.h"
#include "execute/executor.h"

namespace strata {

struct Model {
  ModelManifest manifest;
  Graph graph;
  std::unique_ptr<Device> device;
  std::string device_name;
  PlacementPlan plan;
  std::unique_ptr<MemoryLedger> ledger;
  std::vector<MemoryLedger::Reservation> reservations;
  std::unique_ptr<WeightStore> weights;
  std::unique_ptr<Executor> executor;
};

// Graph, device, plan, memory, weights, executor, in this order; the first that fails says why.
Result<std::unique_ptr<Model>> load_model(ModelManifest manifest, const EngineOptions& options,
                                          const LoadProgress& progress);

}  // namespace strata
