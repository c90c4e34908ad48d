// mamba2: Mamba 2. A norm and a state space layer per block, and nothing else.
#include "models/ssm.h"

namespace strata {

Result<Graph> build_mamba2(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const SsmParams ssm, read_mamba2_params(manifest));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();
  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto normed = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, mamba2_block(model, p, ssm, layer, normed));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
