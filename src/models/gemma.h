// The layer structure that Gemma 2 and Gemma 3 share.
#pragma once

#include "models/blocks.h"

namespace strata {

struct GemmaVariant {
  QueryKeyNorm norm = QueryKeyNorm::kNone;
  std::int32_t window = 0;       // where the file has none
  std::int64_t period = 0;       // every period-th layer is global
  double local_rope_base = 0;    // of windowed layers, without scaling; 0: rope as in global ones
  double attention_softcap = 0;  // where the file has none
  double logit_softcap = 0;      // likewise
  std::int32_t layers_of_27b = 0;
};

Result<Graph> build_gemma(const ModelManifest& manifest, const GemmaVariant& variant);

}  // namespace strata
