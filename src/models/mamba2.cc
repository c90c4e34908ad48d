// mamba2: Mamba 2. A norm and a state space layer per block, and nothing else.
#include "models/ssm.h"

namespace strata {

Result<Graph> build_mamba2(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const SsmParams ssm, read_mamba2_params(manifest));
  return build_single_blocks(manifest, p, [&](ModelBuilder& model, std::int32_t layer, ValueId in) {
    return mamba2_block(model, p, ssm, layer, in);
  });
}

}  // namespace strata
