// Qwen2-MoE: Qwen2 with routed experts, their weights as the softmax gives them, beside a shared
// one.
#include "models/qwen.h"

namespace strata {

Result<Graph> build_qwen2moe(const ModelManifest& manifest) {
  return build_qwen(manifest, {.experts = true, .renormalize = false, .shared_expert = true});
}

}  // namespace strata
