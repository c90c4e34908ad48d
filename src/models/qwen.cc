#include "models/qwen.h"

#include <cmath>

namespace strata {

Result<Graph> build_qwen(const ModelManifest& manifest, QwenVariant variant) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  if (variant.experts && p.experts == 0)
    return corrupt("{} is missing or zero", manifest.full_key("expert_count"));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_table =
      graph.rope_table({ValueId{}, p.rope_dimensions, p.rope_base, p.rope_scale, std::nullopt});
  attention.head_norms = variant.head_norms;
  attention.scale = 1.0f / std::sqrt(static_cast<float>(p.key_size));

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = graph.norm(
        x, model.vector(layer_tensor(layer, "attn_norm.weight"), p.embedding), p.epsilon);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in =
        graph.norm(x, model.vector(layer_tensor(layer, "ffn_norm.weight"), p.embedding), p.epsilon);
    graph.add_to(x, variant.experts
                        ? expert_feed_forward(model, p, layer, ffn_in, true)
                        : gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
