// Qwen3-MoE: Qwen3 with softmax-routed experts whose weights are renormalised.
#include "models/qwen.h"

namespace strata {

Result<Graph> build_qwen3moe(const ModelManifest& manifest) {
  return build_qwen(manifest, {.norm = QueryKeyNorm::kEachHead, .experts = true});
}

}  // namespace strata
