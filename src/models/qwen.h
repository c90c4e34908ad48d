// The layer structure that Qwen2, Qwen3 and Qwen3-MoE share.
#pragma once

#include "models/blocks.h"

namespace strata {

struct QwenVariant {
  bool head_norms = false;
  bool experts = false;
};

Result<Graph> build_qwen(const ModelManifest& manifest, QwenVariant variant);

}  // namespace strata
