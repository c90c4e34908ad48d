// mamba: Mamba 1. Every channel is a head with a time step of its own, of low rank. Falcon-Mamba
// besides norms what selects: the low-rank time step and the inputs and outputs of the state.
#include "models/ssm.h"

namespace strata {
namespace {

constexpr float kSelectionEpsilon = 1e-6f;  // Falcon-Mamba's, which no key says

ValueId mamba_block(ModelBuilder& model, const TransformerParams& params, const SsmParams& ssm,
                    bool norms, std::int32_t layer, ValueId normed) {
  GraphBuilder& graph = model.graph();
  const auto name = [&](std::string_view part) { return layer_tensor(layer, part); };
  const auto projected = graph.matmul(
      normed, model.linear(name("ssm_in"), std::int64_t{2} * ssm.inner, params.embedding));
  const auto gate = graph.slice(projected, ssm.inner, ssm.inner);
  const auto x =
      short_conv_block(model, name("ssm_conv1d"), ssm.kernel, graph.slice(projected, 0, ssm.inner));
  graph.activate(x, UnaryFunction::kSilu);

  const auto selected = graph.matmul(
      x, model.linear(name("ssm_x"), ssm.rank + std::int64_t{2} * ssm.state, ssm.inner));
  const auto select = [&](std::int32_t offset, std::int32_t width) {
    const auto part = graph.slice(selected, offset, width);
    if (norms) graph.norm_heads(part, std::nullopt, kSelectionEpsilon, 1);
    return part;
  };
  SsmScanOp scan;
  scan.x = x;
  scan.dt = graph.matmul(select(0, ssm.rank), model.linear(name("ssm_dt"), ssm.inner, ssm.rank));
  graph.activate(scan.dt, UnaryFunction::kSoftplus);
  scan.b = select(ssm.rank, ssm.state);
  scan.c = select(ssm.rank + ssm.state, ssm.state);
  scan.a = model.table(name("ssm_a"), ssm.inner, ssm.state);
  scan.d = model.vector(name("ssm_d"), ssm.inner);
  scan.heads = ssm.inner;
  scan.head_size = 1;
  scan.state_size = ssm.state;
  const auto gated = graph.gate(gate, graph.ssm_scan(scan), GateFunction::kSilu);
  return graph.matmul(gated, model.linear(name("ssm_out"), params.embedding, ssm.inner));
}

}  // namespace

Result<Graph> build_mamba(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest, LayerMix::kHybrid));
  STRATA_ASSIGN(const SsmParams ssm, read_ssm_params(manifest));
  STRATA_ASSIGN(const bool norms, manifest.boolean_or("ssm.dt_b_c_rms", false));
  return build_single_blocks(manifest, p, [&](ModelBuilder& model, std::int32_t layer, ValueId in) {
    return mamba_block(model, p, ssm, norms, layer, in);
  });
}

}  // namespace strata
