#include "models/gemma.h"

#include <cmath>

namespace strata {
namespace {

// The families' 27B models scale queries by the embedding's share of a head, the others by head
// size.
void adapt(const ModelManifest& manifest, const GemmaVariant& variant, TransformerParams& p) {
  if (!manifest.has("attention.scale") && p.layers == variant.layers_of_27b)
    p.attention_scale = 1.0f / std::sqrt(static_cast<float>(p.embedding / p.heads.front()));
  if (!manifest.has("attn_logit_softcapping"))
    p.attention_softcap = static_cast<float>(variant.attention_softcap);
  if (!manifest.has("final_logit_softcapping"))
    p.logit_softcap = static_cast<float>(variant.logit_softcap);
}

ValueId local_rope_table(ModelBuilder& model, const GemmaVariant& variant, RopeParams rope,
                         double base) {
  if (variant.local_rope_base != 0) rope = {.dimensions = rope.dimensions};
  rope.base = base;
  return model.graph().rope_table(rope_table_op(rope));
}

}  // namespace

Result<Graph> build_gemma(const ModelManifest& manifest, const GemmaVariant& variant) {
  STRATA_ASSIGN(TransformerParams p, read_transformer_params(manifest));
  adapt(manifest, variant, p);
  STRATA_ASSIGN(const WindowPattern windows,
                read_windows(manifest, p, variant.window, variant.period,
                             variant.local_rope_base != 0 ? variant.local_rope_base : p.rope.base));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto global = rope_table(model, p.rope);
  const auto local = local_rope_table(model, variant, p.rope, windows.rope_base);
  AttentionBlock attention;
  attention.norm = variant.norm;

  const auto x = graph.embed(embedding, std::sqrt(static_cast<float>(p.embedding)));
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const bool windowed = windows.windowed[static_cast<std::size_t>(layer)];
    attention.rope_table = windowed ? local : global;
    attention.window = windowed ? windows.size : 0;
    const auto attended =
        attention_block(model, p, layer, layer_norm(model, p, layer, "attn_norm", x), attention);
    graph.add_to(x, layer_norm(model, p, layer, "post_attention_norm", attended));
    const auto fed = gated_feed_forward(model, p, layer, layer_norm(model, p, layer, "ffn_norm", x),
                                        GateFunction::kGeluTanh);
    graph.add_to(x, layer_norm(model, p, layer, "post_ffw_norm", fed));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
