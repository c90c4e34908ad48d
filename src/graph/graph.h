// Graph: a model as an ordered list of operations over values and named weights. Built once per
// load, then immutable; knows nothing of batches, addresses or devices.
#pragma once

#include <string>
#include <vector>

#include "base/format_id.h"
#include "base/status.h"
#include "graph/cache_spec.h"
#include "graph/op.h"

namespace strata {

enum class WeightRole : std::uint8_t {
  kMatrix,  // rows x columns, read through a format's kernels
  kVector,  // one row per slice, read as f32
};

struct Weight {
  std::string name;  // of the tensor in the file
  WeightRole role = WeightRole::kMatrix;
  FormatId format = FormatId::F32;
  std::int64_t columns = 0;  // elements of a row
  std::int64_t rows = 0;     // of one slice
  std::int64_t slices = 1;   // experts
};

struct Value {
  RowDomain domain = RowDomain::kTokens;
  std::int32_t width = 0;
};

struct Graph {
  std::string architecture;
  std::vector<Op> ops;
  std::vector<Value> values;
  std::vector<Weight> weights;
  std::vector<CacheGroupSpec> cache_groups;
  ValueId output;  // logits, or hidden states in a graph without an output head
  std::int32_t layers = 0;
  std::int32_t vocabulary = 0;      // token ids, rows of the smallest table they look up
  std::int32_t context_length = 0;  // positions the model was made for
  std::int32_t max_positions = 0;   // positions it can compute at all; 0: any number
  bool causal = true;               // false: a step brings a sequence whole or not at all
  std::int32_t experts_used = 0;    // 0 where there are none

  const Value& value(ValueId id) const { return values[static_cast<std::size_t>(id.value)]; }
  const Weight& weight(WeightId id) const { return weights[static_cast<std::size_t>(id.value)]; }
  std::int32_t output_width() const { return value(output).width; }
};

// Checks every id, width and domain that the operations rely on. A device may trust a graph that
// passed.
Status validate(const Graph& graph);

}  // namespace strata
