// gpt-oss: every other layer windowed, attention sinks, biases everywhere, YaRN, experts weighted
// by the softmax of the chosen, clamped SwiGLU.
#include "models/blocks.h"

namespace strata {

Result<Graph> build_gpt_oss(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  if (p.experts == 0) return corrupt("{} is missing or zero", manifest.full_key("expert_count"));
  STRATA_TRY(manifest.integer("attention.sliding_window", 1, 1 << 30).status());
  STRATA_ASSIGN(const WindowPattern windows, read_windows(manifest, p, 0, 2, p.rope.base));
  STRATA_ASSIGN(const ExpertBlock experts,
                read_expert_block(manifest, p,
                                  {.function = RouteFunction::kSoftmaxOfChosen,
                                   .renormalize = false,
                                   .gate = GateFunction::kClampedSwiglu}));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto global = rope_table(model, p.rope);
  RopeParams local_rope = p.rope;
  local_rope.base = windows.rope_base;
  const auto local =
      local_rope.base == p.rope.base ? global : graph.rope_table(rope_table_op(local_rope));
  AttentionBlock attention;
  attention.sinks = true;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const bool windowed = windows.windowed[static_cast<std::size_t>(layer)];
    attention.rope_table = windowed ? local : global;
    attention.window = windowed ? windows.size : 0;
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "post_attention_norm", x);
    graph.add_to(x, expert_feed_forward(model, p, layer, ffn_in, experts));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
