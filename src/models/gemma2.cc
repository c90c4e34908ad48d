// gemma2: Gemma 2. Norms before and after each block, every other layer windowed, softcaps on
// scores and logits, tied and scaled embedding.
#include "models/gemma.h"

namespace strata {

Result<Graph> build_gemma2(const ModelManifest& manifest) {
  return build_gemma(manifest, {.window = 4096,
                                .period = 2,
                                .attention_softcap = 50.0,
                                .logit_softcap = 30.0,
                                .layers_of_27b = 46});
}

}  // namespace strata
