// Qwen2 and Qwen2.5: biases on the query, key and value projections.
#include "models/qwen.h"

namespace strata {

Result<Graph> build_qwen2(const ModelManifest& manifest) { return build_qwen(manifest, {}); }

}  // namespace strata
