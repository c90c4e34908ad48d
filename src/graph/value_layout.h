// Where the values of a graph lie in one arena: values whose lives do not overlap share memory.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace strata {

struct StepLimits {
  std::int32_t rows = 0;        // of one step
  std::int32_t logit_rows = 0;  // of one step
};

struct ValueLayout {
  std::vector<Bytes> offsets;         // of each value in the arena, 64-byte aligned
  std::vector<std::int64_t> strides;  // f32 elements from row to row
  Bytes arena_bytes = 0;
};

// Rows of a domain in the largest step.
std::int64_t domain_rows(const Graph& graph, RowDomain domain, const StepLimits& limits);

ValueLayout layout_values(const Graph& graph, const StepLimits& limits);

// Upper bound of what a device needs for one step's quantized activations.
Bytes activation_scratch_bytes(const Graph& graph, const StepLimits& limits);

}  // namespace strata
