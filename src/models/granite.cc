// granite and granitemoe: Granite 3 and 4 without recurrent layers.
#include "models/granite.h"

#include "models/ssm.h"

namespace strata {
namespace {

struct Multipliers {
  double embedding = 1.0;
  double residual = 1.0;
  double logits = 1.0;
  bool rope = true;
};

Result<Multipliers> read_multipliers(const ModelManifest& manifest) {
  Multipliers m;
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

Result<ExpertBlock> read_experts(const ModelManifest& manifest, const TransformerParams& params) {
  STRATA_ASSIGN(ExpertBlock experts, read_expert_block(manifest, params, {}));
  STRATA_ASSIGN(experts.shared_width, manifest.integer_or("expert_shared_feed_forward_length", 0, 0,
                                                          std::int64_t{1} << 24));
  return experts;
}

}  // namespace

Result<Graph> build_granite_layers(const ModelManifest& manifest, LayerMix mix) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, mix));
  SsmParams ssm;
  if (mix == LayerMix::kHybrid) {
    STRATA_ASSIGN(ssm, read_mamba2_params(manifest));
  }
  STRATA_ASSIGN(const Multipliers multipliers, read_multipliers(manifest));
  STRATA_ASSIGN(const ExpertBlock experts, read_experts(manifest, p));
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

Result<Graph> build_granite(const ModelManifest& manifest) {
  return build_granite_layers(manifest, LayerMix::kUniform);
}

}  // namespace strata
