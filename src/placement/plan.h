// PlacementPlan: where everything a model needs will live. A pure function of the graph, the
// device's costs, the machine and the workload; no input/output, clock or environment.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "graph/graph.h"
#include "graph/value_layout.h"

namespace strata {

struct Workload {
  std::int32_t context = 0;    // tokens per sequence; 0: the model's own, reduced to what fits
  std::int32_t sequences = 1;  // that may hold their whole context at once
  StepLimits step;
  Bytes program = 0;  // what the process holds already: code, vocabulary, prompt
  std::map<std::string, Bytes> reserved = {};  // what it will hold besides, by owner
};

// What a device asks for, in its own layout.
struct DeviceCosts {
  std::int32_t block_tokens = 0;
  std::vector<Bytes> cache_block_bytes;  // by cache group
  Bytes segment_bytes = 0;
};

struct PlacementPlan {
  Bytes budget = 0;
  Bytes program = 0;  // the process itself: code, vocabulary, queues, chat templates at work
  std::map<std::string, Bytes> reserved;  // for other work of the process, by owner
  Bytes weights = 0;
  Bytes staging = 0;  // for reading weights
  Bytes segment = 0;  // activations and scratch
  Bytes cache = 0;
  std::int32_t context = 0;                // tokens a sequence may have
  std::vector<std::int32_t> cache_blocks;  // by cache group
  std::int32_t state_tokens = 0;  // of a prompt between the states saved within it; 0: none are
  StepLimits step;
  std::vector<std::string> notes;  // what was reduced, and why

  Bytes total() const;
};

// Contexts beyond this are planned only when asked for.
constexpr std::int32_t kDefaultContextLimit = 32768;
inline std::int32_t default_context(const Graph& graph) {
  return std::min(graph.context_length, kDefaultContextLimit);
}

// Fails with kResourceExhausted, with every part's size, when `budget` cannot hold the model.
Result<PlacementPlan> make_plan(const Graph& graph, const Workload& workload,
                                const DeviceCosts& costs, Bytes budget);

// One line per part, for people.
std::string describe(const PlacementPlan& plan);

// Bytes of a weight as loaded: matrices as in the file, vectors as f32; each 64-byte aligned.
Result<Bytes> weight_bytes(const Weight& weight);

}  // namespace strata
