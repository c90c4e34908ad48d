// granitehybrid: Granite 4 hybrid models. Granite's multipliers on Mamba 2 layers with attention in
// some, which sees positions through those layers alone unless the file asks for rope; each with a
// feed-forward network or a mixture of experts beside a shared one.
#include "models/granite.h"
#include "models/ssm.h"

namespace strata {

Result<Graph> build_granitehybrid(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const SsmParams ssm, read_mamba2_params(manifest));
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
    const auto normed = layer_norm(model, p, layer, "attn_norm", x);
    add(p.kv_heads[static_cast<std::size_t>(layer)] > 0
            ? attention_block(model, p, layer, normed, attention)
            : mamba2_block(model, p, ssm, layer, normed));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    add(p.experts > 0 ? expert_feed_forward(model, p, layer, ffn_in, experts)
                      : gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
  }
  const auto logits = output_head(model, p, embedding, x);
  graph.scale(logits, static_cast<float>(multipliers.logits));
  return model.finish(logits);
}

}  // namespace strata
