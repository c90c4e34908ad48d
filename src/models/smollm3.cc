// smollm3: SmolLM3. The llama shape, but every fourth layer does not know positions.
#include "models/blocks.h"

namespace strata {

constexpr std::int32_t kRopePeriod = 4;  // fixed by the architecture: no key says it

Result<Graph> build_smollm3(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto table = rope_table(model, p.rope);
  AttentionBlock attention;
  attention.rope_style = RopeStyle::kAdjacent;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    attention.rope_table = (layer + 1) % kRopePeriod == 0 ? ValueId{} : table;
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    graph.add_to(x, gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
