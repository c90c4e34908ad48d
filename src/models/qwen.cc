#include "models/qwen.h"

namespace strata {

ValueId gated_shared_expert(ModelBuilder& model, const TransformerParams& p, std::int32_t layer,
                            ValueId normed, std::int64_t width) {
  GraphBuilder& graph = model.graph();
  const auto gate = graph.matmul(
      normed, {model.matrix(layer_tensor(layer, "ffn_gate_inp_shexp.weight"), 1, p.embedding),
               std::nullopt});
  return graph.gate(gate, shared_expert(model, layer, normed, width), GateFunction::kSigmoid);
}

Result<std::int64_t> read_shared_width(const ModelManifest& manifest,
                                       const TransformerParams& params) {
  return manifest.integer_or("expert_shared_feed_forward_length", params.feed_forward.front(), 1,
                             std::int64_t{1} << 24);
}

Result<Graph> build_qwen(const ModelManifest& manifest, QwenVariant variant) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  if (variant.experts && p.experts == 0)
    return corrupt("{} is missing or zero", manifest.full_key("expert_count"));
  STRATA_ASSIGN(const ExpertBlock experts,
                read_expert_block(manifest, p, {.renormalize = variant.renormalize}));
  STRATA_ASSIGN(const auto shared_width, read_shared_width(manifest, p));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_table = rope_table(model, p.rope);
  attention.norm = variant.norm;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    const auto fed = variant.experts
                         ? expert_feed_forward(model, p, layer, ffn_in, experts)
                         : gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu);
    if (variant.shared_expert)
      graph.add_to(fed, gated_shared_expert(model, p, layer, ffn_in, shared_width));
    graph.add_to(x, fed);
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
