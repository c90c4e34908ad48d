// olmo2: OLMo 2 and 3. Norms after each block and over whole rows of queries and keys; OLMo 3 adds
// three windowed layers, whose rope is not scaled, to each global one.
#include "models/blocks.h"

namespace strata {

Result<Graph> build_olmo2(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const WindowPattern windows, read_windows(manifest, p, 0, 4, p.rope.base));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto global = rope_table(model, p.rope);
  const auto local = windows.size == 0
                         ? ValueId{}
                         : graph.rope_table(rope_table_op(
                               {.dimensions = p.rope.dimensions, .base = windows.rope_base}));
  AttentionBlock attention;
  attention.norm = QueryKeyNorm::kWholeRow;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const bool windowed = windows.windowed[static_cast<std::size_t>(layer)];
    attention.rope_table = windowed ? local : global;
    attention.window = windowed ? windows.size : 0;
    const auto attended = attention_block(model, p, layer, x, attention);
    graph.add_to(x, layer_norm(model, p, layer, "post_attention_norm", attended));
    const auto fed = gated_feed_forward(model, p, layer, x, GateFunction::kSilu);
    graph.add_to(x, layer_norm(model, p, layer, "post_ffw_norm", fed));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
