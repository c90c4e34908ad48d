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
  return build_single_blocks(manifest, p, [&](ModelBuilder& model, std::int32_t layer, ValueId in) {
    const auto at = static_cast<std::size_t>(layer);
    return p.feed_forward[at] > 0 ? relu_squared_feed_forward(model, p, layer, in)
           : p.kv_heads[at] > 0   ? attention_block(model, p, layer, in, {})
                                  : mamba2_block(model, p, ssm, layer, in);
  });
}

}  // namespace strata
