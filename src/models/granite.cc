// granite and granitemoe: Granite 3 and 4 without recurrent layers. The llama shape with
// multipliers on embedding, residual, scores and logits; with experts, perhaps beside a shared one.
#include "models/granite.h"

namespace strata {
Result<GraniteMultipliers> read_granite_multipliers(const ModelManifest& manifest) {
  GraniteMultipliers m;
  STRATA_ASSIGN(const double embedding, manifest.real_or("embedding_scale", 0));
  STRATA_ASSIGN(const double residual, manifest.real_or("residual_scale", 0));
  STRATA_ASSIGN(const double logits, manifest.real("logit_scale"));
  if (logits == 0) return corrupt("{} is 0", manifest.full_key("logit_scale"));
  if (embedding != 0) m.embedding = embedding;
  if (residual != 0) m.residual = residual;
  m.logits = 1.0 / logits;
  STRATA_ASSIGN(m.rope, manifest.boolean_or("rope.scaling.finetuned", true));
  return m;
}

Result<ExpertBlock> read_granite_experts(const ModelManifest& manifest,
                                         const TransformerParams& params) {
  STRATA_ASSIGN(ExpertBlock experts, read_expert_block(manifest, params, {}));
  STRATA_ASSIGN(experts.shared_width, manifest.integer_or("expert_shared_feed_forward_length", 0, 0,
                                                          std::int64_t{1} << 24));
  return experts;
}

Result<Graph> build_granite(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const GraniteMultipliers multipliers, read_granite_multipliers(manifest));
  STRATA_ASSIGN(const ExpertBlock experts, read_granite_experts(manifest, p));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_style = RopeStyle::kAdjacent;
  if (multipliers.rope) attention.rope_table = rope_table(model, p.rope);

  const auto x = graph.embed(embedding, static_cast<float>(multipliers.embedding));
  const auto add = [&](ValueId value) {
    graph.scale(value, static_cast<float>(multipliers.residual));
    graph.add_to(x, value);
  };
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    add(attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    add(p.experts > 0 ? expert_feed_forward(model, p, layer, ffn_in, experts)
                      : gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
  }
  const auto logits = output_head(model, p, embedding, x);
  graph.scale(logits, static_cast<float>(multipliers.logits));
  return model.finish(logits);
}

}  // namespace strata
