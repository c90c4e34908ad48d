#include "models/blocks.h"

#include <cmath>

namespace strata {
namespace {

constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;
constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxExperts = 65536;

Result<double> rope_scale(const ModelManifest& manifest) {
  STRATA_ASSIGN(const std::string type, manifest.string_or("rope.scaling.type", "linear"));
  STRATA_ASSIGN(double factor, manifest.real_or("rope.scaling.factor", 0));
  if (factor == 0) {
    STRATA_ASSIGN(factor, manifest.real_or("rope.scale_linear", 0));
  } else if (type != "linear" && type != "none") {
    return unsupported("{}: rope scaling '{}' is not supported (none and linear are)",
                       manifest.full_key("rope.scaling.type"), type);
  }
  if (factor == 0 || type == "none") return 1.0;
  if (factor < 0)
    return corrupt("{} is {}; it must be positive", manifest.full_key("rope.scaling.factor"),
                   factor);
  return 1.0 / factor;
}

Status read_experts(const ModelManifest& manifest, TransformerParams& p) {
  STRATA_ASSIGN(const auto experts, manifest.integer_or("expert_count", 0, 0, kMaxExperts));
  p.experts = static_cast<std::int32_t>(experts);
  if (experts == 0) return {};
  STRATA_ASSIGN(const auto used, manifest.integer("expert_used_count", 1, experts));
  p.experts_used = static_cast<std::int32_t>(used);
  STRATA_ASSIGN(const auto width, manifest.integer_or("expert_feed_forward_length",
                                                      p.feed_forward.front(), 1, kMaxWidth));
  p.expert_feed_forward = static_cast<std::int32_t>(width);
  return {};
}

Status read_heads(const ModelManifest& manifest, TransformerParams& p) {
  const auto layers = static_cast<std::size_t>(p.layers);
  STRATA_ASSIGN(p.heads, manifest.per_layer("attention.head_count", layers, 1, kMaxHeads));
  p.kv_heads = p.heads;
  if (manifest.has("attention.head_count_kv")) {
    STRATA_ASSIGN(p.kv_heads, manifest.per_layer("attention.head_count_kv", layers, 1, kMaxHeads));
  }
  for (std::size_t i = 0; i < layers; ++i)
    if (p.heads[i] % p.kv_heads[i] != 0)
      return corrupt("{}: {} heads are no multiple of {} key/value heads in layer {}",
                     manifest.full_key("attention.head_count"), p.heads[i], p.kv_heads[i], i);
  const std::int64_t fallback = p.embedding / p.heads.front();
  STRATA_ASSIGN(const auto key, manifest.integer_or("attention.key_length", fallback, 1, 65536));
  STRATA_ASSIGN(const auto value, manifest.integer_or("attention.value_length", key, 1, 65536));
  STRATA_ASSIGN(const auto rope, manifest.integer_or("rope.dimension_count", key, 1, key));
  if (rope % 2 != 0)
    return corrupt("{} is {}; it must be even", manifest.full_key("rope.dimension_count"), rope);
  p.key_size = static_cast<std::int32_t>(key);
  p.value_size = static_cast<std::int32_t>(value);
  p.rope_dimensions = static_cast<std::int32_t>(rope);
  return {};
}

std::string shape_text(const Weight& w) {
  return w.slices > 1 ? fmt::format("[{}, {}, {}]", w.columns, w.rows, w.slices)
                      : fmt::format("[{}, {}]", w.columns, w.rows);
}

}  // namespace

Result<TransformerParams> read_transformer_params(const ModelManifest& manifest) {
  TransformerParams p;
  STRATA_ASSIGN(const auto layers, manifest.integer("block_count", 1, kMaxLayers));
  STRATA_ASSIGN(const auto embedding, manifest.integer("embedding_length", 1, kMaxWidth));
  STRATA_ASSIGN(const auto context, manifest.integer("context_length", 1, 1 << 30));
  p.layers = static_cast<std::int32_t>(layers);
  p.embedding = static_cast<std::int32_t>(embedding);
  p.context = static_cast<std::int32_t>(context);

  const TensorInfo* table = manifest.file().find_tensor("token_embd.weight");
  if (table == nullptr) return corrupt("tensor 'token_embd.weight' is missing");
  if (table->shape[1] > static_cast<std::uint64_t>(kMaxWidth))
    return corrupt("tensor 'token_embd.weight' has {} rows; at most {} are allowed",
                   table->shape[1], kMaxWidth);
  p.vocabulary = static_cast<std::int32_t>(table->shape[1]);

  STRATA_TRY(read_heads(manifest, p));
  const auto count = static_cast<std::size_t>(p.layers);
  STRATA_ASSIGN(p.feed_forward, manifest.per_layer("feed_forward_length", count, 1, kMaxWidth));
  STRATA_ASSIGN(p.rope_base, manifest.real_or("rope.freq_base", 10000.0));
  if (p.rope_base <= 0) return corrupt("{} must be positive", manifest.full_key("rope.freq_base"));
  STRATA_ASSIGN(p.rope_scale, rope_scale(manifest));
  STRATA_ASSIGN(const double epsilon, manifest.real("attention.layer_norm_rms_epsilon"));
  if (epsilon < 0 || epsilon > 1)
    return corrupt("{} is {}; it must lie in [0, 1]",
                   manifest.full_key("attention.layer_norm_rms_epsilon"), epsilon);
  p.epsilon = static_cast<float>(epsilon);
  STRATA_TRY(read_experts(manifest, p));
  return p;
}

ModelBuilder::ModelBuilder(const ModelManifest& manifest, const TransformerParams& params)
    : manifest_(manifest), graph_([&] {
        Graph header;
        header.architecture = manifest.architecture();
        header.layers = params.layers;
        header.context_length = params.context;
        return header;
      }()) {}

std::optional<WeightId> ModelBuilder::claim(const std::string& name, Weight weight, bool required) {
  weight.name = name;
  claimed_.insert(name);
  const TensorInfo* tensor = manifest_.file().find_tensor(name);
  if (tensor == nullptr) {
    if (!required) return std::nullopt;
    if (status_.ok())
      status_ = corrupt("tensor '{}' {} is missing; the file is incomplete or of another model",
                        name, shape_text(weight));
    return graph_.add_weight(std::move(weight));
  }
  return add(tensor, std::move(weight));
}

WeightId ModelBuilder::add(const TensorInfo* tensor, Weight weight) {
  const auto extent = [](std::int64_t n) { return static_cast<std::uint64_t>(n); };
  const bool fits = tensor->shape[0] == extent(weight.columns) &&
                    tensor->shape[1] == extent(weight.rows) &&
                    tensor->shape[2] == extent(weight.slices) && tensor->shape[3] == 1;
  if (!fits && status_.ok())
    status_ = corrupt("tensor '{}' has shape [{}, {}, {}, {}], expected {}", tensor->name,
                      tensor->shape[0], tensor->shape[1], tensor->shape[2], tensor->shape[3],
                      shape_text(weight));
  weight.format = tensor->format;
  return graph_.add_weight(std::move(weight));
}

WeightId ModelBuilder::matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                              std::int64_t slices) {
  return *claim(name, {{}, WeightRole::kMatrix, FormatId::F32, columns, rows, slices}, true);
}

std::optional<WeightId> ModelBuilder::optional_matrix(const std::string& name, std::int64_t rows,
                                                      std::int64_t columns) {
  return claim(name, {{}, WeightRole::kMatrix, FormatId::F32, columns, rows, 1}, false);
}

WeightId ModelBuilder::vector(const std::string& name, std::int64_t elements) {
  return *claim(name, {{}, WeightRole::kVector, FormatId::F32, elements, 1, 1}, true);
}

std::optional<WeightId> ModelBuilder::optional_vector(const std::string& name,
                                                      std::int64_t elements) {
  return claim(name, {{}, WeightRole::kVector, FormatId::F32, elements, 1, 1}, false);
}

GraphBuilder::Linear ModelBuilder::linear(const std::string& name, std::int64_t rows,
                                          std::int64_t columns) {
  return {matrix(name + ".weight", rows, columns), optional_vector(name + ".bias", rows),
          scale(name, 1)};
}

GraphBuilder::Linear ModelBuilder::experts(const std::string& name, std::int64_t rows,
                                           std::int64_t columns, std::int64_t experts) {
  return {matrix(name + ".weight", rows, columns, experts), std::nullopt, scale(name, experts)};
}

// A format of little range, as NVFP4, leaves a factor of the whole tensor to a tensor beside it.
// The factor for the inputs is of use only where activations become 4-bit floats as well.
std::optional<WeightId> ModelBuilder::scale(const std::string& name, std::int64_t slices) {
  ignore(name + ".input_scale");
  return optional_vector(name + ".scale", slices);
}

Result<Graph> ModelBuilder::finish(ValueId logits) {
  STRATA_TRY(status_);
  for (const TensorInfo& tensor : manifest_.file().tensors())
    if (!claimed_.contains(tensor.name))
      return unsupported(
          "tensor '{}' is not known for architecture '{}'; computing without it would give wrong "
          "answers",
          tensor.name, manifest_.architecture());
  return graph_.finish(logits);
}

std::string layer_tensor(std::int32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

ValueId attention_block(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                        ValueId normed, const AttentionBlock& block) {
  GraphBuilder& graph = model.graph();
  const auto heads = static_cast<std::int32_t>(params.heads[static_cast<std::size_t>(layer)]);
  const auto kv_heads = static_cast<std::int32_t>(params.kv_heads[static_cast<std::size_t>(layer)]);
  const GraphBuilder::Linear inputs[] = {
      model.linear(layer_tensor(layer, "attn_q"), std::int64_t{heads} * params.key_size,
                   params.embedding),
      model.linear(layer_tensor(layer, "attn_k"), std::int64_t{kv_heads} * params.key_size,
                   params.embedding),
      model.linear(layer_tensor(layer, "attn_v"), std::int64_t{kv_heads} * params.value_size,
                   params.embedding)};
  const auto qkv = graph.matmul(normed, inputs);
  if (block.head_norms) {
    const auto q_norm = model.vector(layer_tensor(layer, "attn_q_norm.weight"), params.key_size);
    const auto k_norm = model.vector(layer_tensor(layer, "attn_k_norm.weight"), params.key_size);
    graph.norm_heads(qkv[0], q_norm, params.epsilon, heads);
    graph.norm_heads(qkv[1], k_norm, params.epsilon, kv_heads);
  }
  graph.rope({block.rope_table, qkv[0], heads, params.rope_dimensions, block.rope_style});
  graph.rope({block.rope_table, qkv[1], kv_heads, params.rope_dimensions, block.rope_style});
  AttentionOp op;
  op.query = qkv[0];
  op.key = qkv[1];
  op.value = qkv[2];
  op.heads = heads;
  op.kv_heads = kv_heads;
  op.head_size = params.key_size;
  op.value_size = params.value_size;
  op.window = block.window;
  op.scale = block.scale;
  op.softcap = block.softcap;
  const auto attended = graph.attention(op);
  return graph.matmul(attended, model.linear(layer_tensor(layer, "attn_output"), params.embedding,
                                             std::int64_t{heads} * params.value_size));
}

ValueId gated_feed_forward(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                           ValueId normed, GateFunction function) {
  GraphBuilder& graph = model.graph();
  const std::int64_t width = params.feed_forward[static_cast<std::size_t>(layer)];
  const GraphBuilder::Linear inputs[] = {
      model.linear(layer_tensor(layer, "ffn_gate"), width, params.embedding),
      model.linear(layer_tensor(layer, "ffn_up"), width, params.embedding)};
  const auto gate_up = graph.matmul(normed, inputs);
  const auto gated = graph.gate(gate_up[0], gate_up[1], function);
  return graph.matmul(gated,
                      model.linear(layer_tensor(layer, "ffn_down"), params.embedding, width));
}

ValueId expert_feed_forward(ModelBuilder& model, const TransformerParams& params,
                            std::int32_t layer, ValueId normed, bool renormalize) {
  GraphBuilder& graph = model.graph();
  const std::int64_t width = params.expert_feed_forward;
  const auto scores = graph.matmul(normed, {model.matrix(layer_tensor(layer, "ffn_gate_inp.weight"),
                                                         params.experts, params.embedding),
                                            std::nullopt, std::nullopt});
  const auto routing = graph.route(scores, params.experts_used, renormalize);
  const GraphBuilder::Linear inputs[] = {
      model.experts(layer_tensor(layer, "ffn_gate_exps"), width, params.embedding, params.experts),
      model.experts(layer_tensor(layer, "ffn_up_exps"), width, params.embedding, params.experts)};
  const auto gate_up = graph.expert_matmul(normed, routing, inputs);
  const auto gated = graph.gate(gate_up[0], gate_up[1], GateFunction::kSilu);
  const GraphBuilder::Linear down[] = {
      model.experts(layer_tensor(layer, "ffn_down_exps"), params.embedding, width, params.experts)};
  return graph.combine(graph.expert_matmul(gated, routing, down).front(), routing);
}

ValueId output_head(ModelBuilder& model, const TransformerParams& params, WeightId embedding,
                    ValueId x) {
  GraphBuilder& graph = model.graph();
  const auto rows = graph.select_logit_rows(x);
  const auto normed =
      graph.norm(rows, model.vector("output_norm.weight", params.embedding), params.epsilon);
  const auto head = model.optional_matrix("output.weight", params.vocabulary, params.embedding);
  return graph.matmul(normed, {head.value_or(embedding), std::nullopt,
                               head ? model.scale("output", 1) : std::nullopt});
}

}  // namespace strata
