// phi3: Phi-3 and Phi-4. Projections fused to attn_qkv and ffn_up, LongRoPE in the long variants.
#include "models/blocks.h"

namespace strata {

Result<Graph> build_phi3(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const auto window,
                manifest.integer_or("attention.sliding_window", 0, 0, std::int64_t{1} << 30));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_table = rope_table(model, p.rope);
  attention.window = static_cast<std::int32_t>(window);

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    graph.add_to(x, fused_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
