// gemma3: Gemma 3 text models. Norms before and after each block, norms on query and key heads,
// five windowed layers to each global one, two rope bases, tied and scaled embedding.
#include "models/gemma.h"

namespace strata {

Result<Graph> build_gemma3(const ModelManifest& manifest) {
  STRATA_TRY(manifest.integer("attention.sliding_window", 1, 1 << 30).status());
  return build_gemma(manifest, {.norm = QueryKeyNorm::kEachHead,
                                .period = 6,
                                .local_rope_base = 10000.0,
                                .layers_of_27b = 62});
}

}  // namespace strata
