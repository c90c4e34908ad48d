// lfm2: Liquid Foundation Models 2. Gated short convolutions, and attention with norms on query and
// key heads in the layers that have key/value heads.
#include "models/ssm.h"

namespace strata {
namespace {

ValueId gated_conv_block(ModelBuilder& model, const TransformerParams& params, std::int32_t kernel,
                         std::int32_t layer, ValueId normed) {
  GraphBuilder& graph = model.graph();
  const std::int32_t width = params.embedding;
  const auto projected = graph.matmul(normed, model.linear(layer_tensor(layer, "shortconv.in_proj"),
                                                           std::int64_t{3} * width, width));
  const auto input_gate = graph.slice(projected, 0, width);
  const auto output_gate = graph.slice(projected, width, width);
  const auto gated =
      graph.gate(input_gate, graph.slice(projected, 2 * width, width), GateFunction::kIdentity);
  const auto convolved =
      short_conv_block(model, layer_tensor(layer, "shortconv.conv"), kernel, gated);
  return graph.matmul(graph.gate(output_gate, convolved, GateFunction::kIdentity),
                      model.linear(layer_tensor(layer, "shortconv.out_proj"), width, width));
}

}  // namespace

Result<Graph> build_lfm2(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const auto kernel, manifest.integer("shortconv.l_cache", 2, 64));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();
  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  AttentionBlock attention;
  attention.rope_table = rope_table(model, p.rope);
  attention.norm = QueryKeyNorm::kEachHead;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto normed = layer_norm(model, p, layer, "attn_norm", x);
    graph.add_to(
        x, p.kv_heads[static_cast<std::size_t>(layer)] > 0
               ? attention_block(model, p, layer, normed, attention)
               : gated_conv_block(model, p, static_cast<std::int32_t>(kernel), layer, normed));
    const auto ffn_in = layer_norm(model, p, layer, "ffn_norm", x);
    graph.add_to(x, gated_feed_forward(model, p, layer, ffn_in, GateFunction::kSilu));
  }
  return model.finish(output_head(model, p, embedding, x, "token_embd_norm.weight"));
}

}  // namespace strata
