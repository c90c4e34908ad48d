// Rotary embedding as GGUF's common keys describe it: plain, linearly scaled, YaRN, or with
// divisors per frequency.
#pragma once

#include "gguf/manifest.h"
#include "graph/op.h"

namespace strata {

struct RopeParams {
  std::int32_t dimensions = 0;
  double base = 10000.0;
  double scale = 1.0;        // 1 / factor of the context's extension
  double magnitude = 1.0;    // of cos and sin
  double yarn_strength = 0;  // 0: no YaRN
  double beta_fast = 32.0;   // turns within the original context above which a pair is not scaled
  double beta_slow = 1.0;    // and below which it is scaled in full
  std::int32_t original_context = 0;
};

// Fails on values that are absurd and on a kind of scaling that is not known.
Result<RopeParams> read_rope(const ModelManifest& manifest, std::int32_t dimensions,
                             std::int32_t context);

// The operation without its output and divisors.
RopeTableOp rope_table_op(const RopeParams& params);

// 0.1 multiplier ln(factor) + 1, by which YaRN lengthens queries and keys.
double yarn_magnitude(double factor, double multiplier);

}  // namespace strata
