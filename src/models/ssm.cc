#include "models/ssm.h"

namespace strata {
namespace {

constexpr std::int64_t kMaxKernel = 64;
constexpr std::int64_t kMaxInner = 1 << 20;
constexpr std::int64_t kMaxState = 1 << 28;  // elements of a layer

}  // namespace

Result<SsmParams> read_ssm_params(const ModelManifest& manifest) {
  STRATA_ASSIGN(const auto kernel, manifest.integer("ssm.conv_kernel", 2, kMaxKernel));
  STRATA_ASSIGN(const auto inner, manifest.integer("ssm.inner_size", 1, kMaxInner));
  STRATA_ASSIGN(const auto state, manifest.integer("ssm.state_size", 1, kMaxState / inner));
  STRATA_ASSIGN(const auto rank, manifest.integer("ssm.time_step_rank", 1, kMaxInner));
  STRATA_ASSIGN(const auto groups, manifest.integer_or("ssm.group_count", 1, 1, rank));
  return SsmParams{static_cast<std::int32_t>(kernel), static_cast<std::int32_t>(inner),
                   static_cast<std::int32_t>(state), static_cast<std::int32_t>(rank),
                   static_cast<std::int32_t>(groups)};
}

Result<SsmParams> read_mamba2_params(const ModelManifest& manifest) {
  STRATA_ASSIGN(const SsmParams ssm, read_ssm_params(manifest));
  if (ssm.inner % ssm.rank != 0)
    return corrupt("{}: {} heads do not divide {} channels",
                   manifest.full_key("ssm.time_step_rank"), ssm.rank, ssm.inner);
  if (ssm.rank % ssm.groups != 0)
    return corrupt("{}: {} groups do not divide {} heads", manifest.full_key("ssm.group_count"),
                   ssm.groups, ssm.rank);
  return ssm;
}

ValueId short_conv_block(ModelBuilder& model, const std::string& name, std::int32_t kernel,
                         ValueId in) {
  const std::int32_t channels = model.graph().width(in);
  ShortConvOp op;
  op.in = in;
  op.weight = model.table(name + ".weight", channels, kernel);
  op.bias = model.optional_vector(name + ".bias", channels);
  op.kernel = kernel;
  return model.graph().short_conv(op);
}

ValueId mamba2_block(ModelBuilder& model, const TransformerParams& params, const SsmParams& ssm,
                     std::int32_t layer, ValueId normed) {
  GraphBuilder& graph = model.graph();
  const auto name = [&](std::string_view part) { return layer_tensor(layer, part); };
  const std::int32_t shared = ssm.groups * ssm.state;
  const std::int32_t convolved = ssm.inner + 2 * shared;
  const auto projected = graph.matmul(
      normed, model.linear(name("ssm_in"), std::int64_t{ssm.inner} + convolved + ssm.rank,
                           params.embedding));
  const auto gate = graph.slice(projected, 0, ssm.inner);
  const auto dt = graph.slice(projected, ssm.inner + convolved, ssm.rank);
  graph.activate(dt, UnaryFunction::kSoftplus, model.vector(name("ssm_dt.bias"), ssm.rank));
  const auto inputs = short_conv_block(model, name("ssm_conv1d"), ssm.kernel,
                                       graph.slice(projected, ssm.inner, convolved));
  graph.activate(inputs, UnaryFunction::kSilu);

  SsmScanOp scan;
  scan.x = graph.slice(inputs, 0, ssm.inner);
  scan.dt = dt;
  scan.b = graph.slice(inputs, ssm.inner, shared);
  scan.c = graph.slice(inputs, ssm.inner + shared, shared);
  scan.a = model.table(name("ssm_a"), ssm.rank, 1);
  scan.d = model.table(name("ssm_d"), ssm.rank, 1);
  scan.heads = ssm.rank;
  scan.head_size = ssm.inner / ssm.rank;
  scan.state_size = ssm.state;
  scan.groups = ssm.groups;
  const auto gated = graph.gate(gate, graph.ssm_scan(scan), GateFunction::kSilu);
  graph.norm_heads(gated, model.table(name("ssm_norm.weight"), ssm.groups, ssm.inner / ssm.groups),
                   params.epsilon, ssm.groups);
  return graph.matmul(gated, model.linear(name("ssm_out"), params.embedding, ssm.inner));
}

Result<Graph> build_single_blocks(const ModelManifest& manifest, const TransformerParams& params,
                                  const Block& block) {
  ModelBuilder model(manifest, params);
  GraphBuilder& graph = model.graph();
  const auto embedding = model.matrix("token_embd.weight", params.vocabulary, params.embedding);
  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < params.layers; ++layer)
    graph.add_to(x, block(model, layer, layer_norm(model, params, layer, "attn_norm", x)));
  return model.finish(output_head(model, params, embedding, x));
}

}  // namespace strata
