// The layer structure that Qwen2, Qwen3 and their mixtures share.
#pragma once

#include "models/blocks.h"

namespace strata {

struct QwenVariant {
  QueryKeyNorm norm = QueryKeyNorm::kNone;
  bool experts = false;
  bool renormalize = true;     // the chosen experts' weights
  bool shared_expert = false;  // behind a sigmoid gate
};

Result<Graph> build_qwen(const ModelManifest& manifest, QwenVariant variant);

}  // namespace strata
