// Qwen3: RMS norms on every query and key head, no biases.
#include "models/qwen.h"

namespace strata {

Result<Graph> build_qwen3(const ModelManifest& manifest) {
  return build_qwen(manifest, {.norm = QueryKeyNorm::kEachHead});
}

}  // namespace strata
