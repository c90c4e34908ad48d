// nemotron_h: Nemotron-H. Each block is one norm before a Mamba 2 layer, attention without rope or
// a feed-forward network of squared ReLUs.
#include "models/ssm.h"

namespace strata {
namespace {

ValueId relu_squared_feed_forward(ModelBuilder& model, const TransformerParams& params,
                                  std::int32_t layer, ValueId normed) {
  GraphBuilder& graph = model.graph();
  const std::int64_t width = params.feed_forward[static_cast<std::size_t>(layer)];
  const auto up =
      graph.matmul(normed, model.linear(layer_tensor(layer, "ffn_up"), width, params.embedding));
  graph.activate(up, UnaryFunction::kReluSquared);
  return graph.matmul(up, model.linear(layer_tensor(layer, "ffn_down"), params.embedding, width));
}

}  // namespace

Result<Graph> build_nemotron_h(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const SsmParams ssm, read_mamba2_params(manifest));
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();
  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const AttentionBlock attention;

  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto normed = layer_norm(model, p, layer, "attn_norm", x);
    const auto at = static_cast<std::size_t>(layer);
    graph.add_to(x, p.feed_forward[at] > 0 ? relu_squared_feed_forward(model, p, layer, normed)
                    : p.kv_heads[at] > 0   ? attention_block(model, p, layer, normed, attention)
                                           : mamba2_block(model, p, ssm, layer, normed));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
