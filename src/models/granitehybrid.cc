// granitehybrid: Granite 4 hybrid models. Mamba 2 layers with attention in some; each with a
// feed-forward network or a mixture of experts beside a shared one.
#include "models/granite.h"

namespace strata {

Result<Graph> build_granitehybrid(const ModelManifest& manifest) {
  return build_granite_layers(manifest, LayerMix::kHybrid);
}

}  // namespace strata
