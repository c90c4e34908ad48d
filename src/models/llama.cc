// llama: Llama 1-3, Mistral, SmolLM2 and others of the shape; with experts, Mixtral.
#include "models/blocks.h"

namespace strata {

Result<Graph> build_llama(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const ExpertBlock experts, read_expert_block(manifest, p, {}));
  STRATA_ASSIGN(const auto window,
                manifest.integer_or("attention.sliding_window", 0, 0, std::int64_t{1} << 30));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_style = RopeStyle::kAdjacent;
  attention.rope_table = rope_table(model, p.rope);
  attention.window = static_cast<std::int32_t>(window);

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    graph.add_to(x, p.experts > 0
                        ? expert_feed_forward(model, p, layer, ffn_in, experts)
                        : gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
    // Written by old converters; the frequencies follow from the base.
    model.ignore(layer_tensor(layer, "attn_rot_embd.weight"));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
