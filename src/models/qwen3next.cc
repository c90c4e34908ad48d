// qwen3next: Qwen3-Next. Gated delta rules in most layers, gated attention in the others, and a
// mixture of experts beside a gated shared one in all.
#include "models/qwen.h"
#include "models/ssm.h"

namespace strata {
namespace {

constexpr float kKeyNormEpsilon = 1e-6f;

// What a layer of delta rules projects its input to.
struct DeltaInputs {
  ValueId convolved;  // queries, keys and values, before the convolution
  ValueId gate;
  ValueId strengths;  // and time steps
};

// Reads attn_qkv and attn_gate, or ssm_in, where each key head brings its query, its key, and the
// values and gates of its value heads.
DeltaInputs project(ModelBuilder& model, const TransformerParams& p, const SsmParams& ssm,
                    std::int32_t layer, ValueId normed) {
  GraphBuilder& graph = model.graph();
  const auto linear = [&](std::string_view part, std::int64_t rows) {
    return model.linear(layer_tensor(layer, part), rows, p.embedding);
  };
  const std::int32_t keys = ssm.groups * ssm.state;
  const std::int64_t convolved = std::int64_t{2} * keys + ssm.inner;
  const auto strengths = [&] { return linear("ssm_ba", std::int64_t{2} * ssm.rank); };
  if (!model.has(layer_tensor(layer, "ssm_in.weight"))) {
    const GraphBuilder::Linear linears[] = {linear("attn_qkv", convolved),
                                            linear("attn_gate", ssm.inner), strengths()};
    const auto outs = graph.matmul(normed, linears);
    return {outs[0], outs[1], outs[2]};
  }
  const GraphBuilder::Linear linears[] = {linear("ssm_in", convolved + ssm.inner), strengths()};
  const auto outs = graph.matmul(normed, linears);
  const std::int32_t values = ssm.inner / ssm.groups;
  const auto slice = [&](std::int32_t offset, std::int32_t width) {
    return graph.slice(outs[0], offset, width, ssm.groups);
  };
  const auto query = slice(0, ssm.state);
  const auto key = slice(ssm.state, ssm.state);
  const auto value = slice(2 * ssm.state, values);
  return {graph.concat({{query, 0, 0, keys}, {key, 0, 0, keys}, {value, 0, 0, ssm.inner}}, 1),
          slice(2 * ssm.state + values, values), outs[1]};
}

// Read from the ssm keys: groups are key heads, the rank is the number of value heads and the state
// size that of a key.
ValueId delta_block(ModelBuilder& model, const TransformerParams& p, const SsmParams& ssm,
                    std::int32_t layer, ValueId normed) {
  GraphBuilder& graph = model.graph();
  const auto name = [&](std::string_view part) { return layer_tensor(layer, part); };
  const std::int32_t keys = ssm.groups * ssm.state;
  const DeltaInputs projected = project(model, p, ssm, layer, normed);
  const auto inputs = short_conv_block(model, name("ssm_conv1d"), ssm.kernel, projected.convolved);
  graph.activate(inputs, UnaryFunction::kSilu);

  // Each key head brings the strengths and then the time steps of its value heads.
  const std::int32_t shared = ssm.rank / ssm.groups;
  GatedDeltaOp op;
  op.query = graph.slice(inputs, 0, keys);
  op.key = graph.slice(inputs, keys, keys);
  op.value = graph.slice(inputs, 2 * keys, ssm.inner);
  op.beta = graph.slice(projected.strengths, 0, shared, ssm.groups);
  graph.activate(op.beta, UnaryFunction::kSigmoid);
  op.dt = graph.slice(projected.strengths, shared, shared, ssm.groups);
  graph.activate(op.dt, UnaryFunction::kSoftplus, model.vector(name("ssm_dt.bias"), ssm.rank));
  op.a = model.vector(name("ssm_a"), ssm.rank);
  op.key_heads = ssm.groups;
  op.value_heads = ssm.rank;
  op.key_size = ssm.state;
  op.value_size = ssm.inner / ssm.rank;
  op.epsilon = kKeyNormEpsilon;
  const auto out = graph.gated_delta(op);
  graph.norm_heads(out, model.vector(name("ssm_norm.weight"), op.value_size), p.epsilon, ssm.rank);
  return graph.matmul(graph.gate(projected.gate, out, GateFunction::kSilu),
                      model.linear(name("ssm_out"), p.embedding, ssm.inner));
}

// Each head's query is followed by the gate of what the head brings.
ValueId gated_attention_block(ModelBuilder& model, const TransformerParams& p, std::int32_t layer,
                              ValueId normed, ValueId rope) {
  GraphBuilder& graph = model.graph();
  const auto name = [&](std::string_view part) { return layer_tensor(layer, part); };
  AttentionOp op;
  op.heads = static_cast<std::int32_t>(p.heads[static_cast<std::size_t>(layer)]);
  op.kv_heads = static_cast<std::int32_t>(p.kv_heads[static_cast<std::size_t>(layer)]);
  op.head_size = p.key_size;
  op.value_size = p.value_size;
  op.causal = p.causal;
  op.scale = p.attention_scale;
  const std::int32_t queries = op.heads * op.head_size;
  const GraphBuilder::Linear linears[] = {
      model.linear(name("attn_q"), std::int64_t{2} * queries, p.embedding),
      model.linear(name("attn_k"), std::int64_t{op.kv_heads} * op.head_size, p.embedding),
      model.linear(name("attn_v"), std::int64_t{op.kv_heads} * op.value_size, p.embedding)};
  const auto projected = graph.matmul(normed, linears);
  op.query = graph.slice(projected[0], 0, op.head_size, op.heads);
  op.key = projected[1];
  op.value = projected[2];
  const auto gate = graph.slice(projected[0], op.head_size, op.head_size, op.heads);
  graph.norm_heads(op.query, model.vector(name("attn_q_norm.weight"), op.head_size), p.epsilon,
                   op.heads);
  graph.norm_heads(op.key, model.vector(name("attn_k_norm.weight"), op.head_size), p.epsilon,
                   op.kv_heads);
  graph.rope({rope, op.query, op.heads, p.rope.dimensions, RopeStyle::kHalves});
  graph.rope({rope, op.key, op.kv_heads, p.rope.dimensions, RopeStyle::kHalves});
  const auto gated = graph.gate(gate, graph.attention(op), GateFunction::kSigmoid);
  return graph.matmul(gated, model.linear(name("attn_output"), p.embedding, queries));
}

}  // namespace

Result<Graph> build_qwen3next(const ModelManifest& manifest) {
  STRATA_ASSIGN(const TransformerParams p, read_transformer_params(manifest));
  STRATA_ASSIGN(const SsmParams ssm, read_mamba2_params(manifest));
  STRATA_ASSIGN(const ExpertBlock experts, read_expert_block(manifest, p, {}));
  STRATA_ASSIGN(const auto shared_width, read_shared_width(manifest, p));
  if (p.experts == 0) return corrupt("{} is missing or zero", manifest.full_key("expert_count"));
  if (p.value_size != p.key_size)
    return corrupt("{} is {}; the gates of attention need the size of keys, {}",
                   manifest.full_key("attention.value_length"), p.value_size, p.key_size);
  ModelBuilder model(manifest, p);
  GraphBuilder& graph = model.graph();
  const auto embedding = model.matrix("token_embd.weight", p.vocabulary, p.embedding);
  const auto rope = rope_table(model, p.rope);
  const auto x = graph.embed(embedding, 1.0f);
  for (std::int32_t layer = 0; layer < p.layers; ++layer) {
    const auto normed = layer_norm(model, p, layer, "attn_norm", x);
    const bool attends = model.has(layer_tensor(layer, "attn_q.weight"));
    graph.add_to(x, attends ? gated_attention_block(model, p, layer, normed, rope)
                            : delta_block(model, p, ssm, layer, normed));
    const auto ffn_in = layer_norm(model, p, layer, "post_attention_norm", x);
    graph.add_to(x, expert_feed_forward(model, p, layer, ffn_in, experts));
    graph.add_to(x, gated_shared_expert(model, p, layer, ffn_in, shared_width));
  }
  return model.finish(output_head(model, p, embedding, x));
}

}  // namespace strata
