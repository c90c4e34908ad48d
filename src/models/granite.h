// What Granite's dense and hybrid models share.
#pragma once

#include "models/blocks.h"

namespace strata {

struct GraniteMultipliers {
  double embedding = 1.0;
  double residual = 1.0;
  double logits = 1.0;
  bool rope = true;
};
Result<GraniteMultipliers> read_granite_multipliers(const ModelManifest& manifest);

Result<ExpertBlock> read_granite_experts(const ModelManifest& manifest,
                                         const TransformerParams& params);

}  // namespace strata
