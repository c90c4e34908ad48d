// glm4moe: GLM-4.5 and later mixtures. Leading dense layers, then routed experts beside shared
// ones; the sigmoid router chooses by a biased score; part of each head is rotated.
#include "models/blocks.h"

namespace strata {
namespace {

// Vision models give a token three positions, which are one for text; their frequencies then are
// those of plain rope.
Status check_sections(const ModelManifest& manifest, const RopeParams& rope) {
  const std::string key = manifest.full_key("rope.dimension_sections");
  if (!manifest.metadata().contains(key)) return {};
  STRATA_ASSIGN(const MetadataArray* list, manifest.metadata().get_array(key));
  STRATA_ASSIGN(const auto sections, list->as_integers());
  std::int64_t covered = 0;
  for (std::size_t i = 0; i < sections.size() && i < 3; ++i) covered += sections[i];
  if (covered == 0 || covered == rope.dimensions / 2) return {};
  return unsupported("{} covers {} of {} frequencies; all or none are supported", key, covered,
                     rope.dimensions / 2);
}

}  // namespace

Result<Graph> build_glm4moe(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  if (p.experts == 0) return corrupt("{} is missing or zero", manifest.full_key("expert_count"));
  STRATA_TRY(check_sections(manifest, p.rope));
  STRATA_ASSIGN(
      ExpertBlock experts,
      read_expert_block(manifest, p, {.function = RouteFunction::kSigmoid, .renormalize = false}));
  STRATA_ASSIGN(const auto dense, manifest.integer_or("leading_dense_block_count", 0, 0, p.layers));
  STRATA_ASSIGN(const auto shared, manifest.integer_or("expert_shared_count", 0, 0, 64));
  experts.shared_width = shared * p.expert_feed_forward;
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();

  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_table = rope_table(model, p.rope);
  if (model.has(layer_tensor(0, "attn_q_norm.weight"))) attention.norm = QueryKeyNorm::kEachHead;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto attention_in = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(x, attention_block(model, p, layer, attention_in, attention));
    const auto ffn_in = layer_norm(model, p, layer, "post_attention_norm", x);
    graph.add_to(x, layer < dense ? gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu)
                                  : expert_feed_forward(model, p, layer, ffn_in, experts));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
