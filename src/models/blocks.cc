#include "models/blocks.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace strata {
namespace {

constexpr std::int64_t kMaxLayers = 4096;
constexpr std::int64_t kMaxWidth = std::int64_t{1} << 24;
constexpr std::int64_t kMaxHeads = 4096;
constexpr std::int64_t kMaxExperts = 65536;

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

Status read_heads(const ModelManifest& manifest, LayerMix mix, TransformerParams& p) {
  const auto layers = static_cast<std::size_t>(p.layers);
  const std::int64_t least = mix == LayerMix::kHybrid ? 0 : 1;
  STRATA_ASSIGN(p.heads, manifest.per_layer("attention.head_count", layers, least, kMaxHeads));
  p.kv_heads = p.heads;
  if (manifest.has("attention.head_count_kv")) {
    STRATA_ASSIGN(p.kv_heads,
                  manifest.per_layer("attention.head_count_kv", layers, least, kMaxHeads));
  }
  for (std::size_t i = 0; i < layers; ++i)
    if (p.kv_heads[i] != 0 && (p.heads[i] == 0 || p.heads[i] % p.kv_heads[i] != 0))
      return corrupt("{}: {} heads are no multiple of {} key/value heads in layer {}",
                     manifest.full_key("attention.head_count"), p.heads[i], p.kv_heads[i], i);
  const std::int64_t most = *std::ranges::max_element(p.heads);
  if (most == 0) return {};  // no layer attends
  const std::int64_t fallback = p.embedding / most;
  STRATA_ASSIGN(const auto key, manifest.integer_or("attention.key_length", fallback, 1, 65536));
  STRATA_ASSIGN(const auto value, manifest.integer_or("attention.value_length", key, 1, 65536));
  p.key_size = static_cast<std::int32_t>(key);
  p.value_size = static_cast<std::int32_t>(value);
  return {};
}

Status read_attention(const ModelManifest& manifest, LayerMix mix, TransformerParams& p) {
  STRATA_TRY(read_heads(manifest, mix, p));
  if (p.key_size == 0) return {};
  STRATA_ASSIGN(const auto rope,
                manifest.integer_or("rope.dimension_count", p.key_size, 1, p.key_size));
  if (rope % 2 != 0)
    return corrupt("{} is {}; it must be even", manifest.full_key("rope.dimension_count"), rope);
  STRATA_ASSIGN(p.rope, read_rope(manifest, static_cast<std::int32_t>(rope), p.context));
  STRATA_ASSIGN(p.causal, manifest.boolean_or("attention.causal", true));
  STRATA_ASSIGN(const double scale, manifest.real_or("attention.scale", 0));
  p.attention_scale =
      static_cast<float>(scale != 0 ? scale : 1.0 / std::sqrt(static_cast<double>(p.key_size)));
  const auto softcap = [&](std::string_view key, float& cap) -> Status {
    STRATA_ASSIGN(const double value, manifest.real_or(key, 0));
    if (value < 0) return corrupt("{} is {}; it must be positive", manifest.full_key(key), value);
    cap = static_cast<float>(value);
    return {};
  };
  STRATA_TRY(softcap("attn_logit_softcapping", p.attention_softcap));
  return softcap("final_logit_softcapping", p.logit_softcap);
}

Result<std::vector<bool>> listed_windows(const MetadataArray& list, std::size_t layers,
                                         const std::string& key) {
  std::vector<bool> windowed;
  if (list.element_type == ValueType::kBool) {
    STRATA_ASSIGN(windowed, list.as_bools());
  } else {
    STRATA_ASSIGN(const auto flags, list.as_integers());
    for (const std::int64_t flag : flags) windowed.push_back(flag != 0);
  }
  if (windowed.size() < layers)
    return corrupt("{} has {} values for {} layers", key, windowed.size(), layers);
  windowed.resize(layers);
  return windowed;
}

std::string shape_text(const Weight& w) {
  return w.slices > 1 ? fmt::format("[{}, {}, {}]", w.columns, w.rows, w.slices)
                      : fmt::format("[{}, {}]", w.columns, w.rows);
}

}  // namespace

Result<TransformerParams> read_transformer_params(const ModelManifest& manifest, LayerMix mix) {
  TransformerParams p;
  STRATA_ASSIGN(const auto layers, manifest.integer("block_count", 1, kMaxLayers));
  STRATA_ASSIGN(const auto embedding, manifest.integer("embedding_length", 1, kMaxWidth));
  STRATA_ASSIGN(const auto context, manifest.integer("context_length", 1, 1 << 30));
  STRATA_ASSIGN(const auto nextn, manifest.integer_or("nextn_predict_layers", 0, 0, layers - 1));
  p.layers = static_cast<std::int32_t>(layers);
  p.embedding = static_cast<std::int32_t>(embedding);
  p.context = static_cast<std::int32_t>(context);

  const TensorInfo* table = manifest.file().find_tensor("token_embd.weight");
  if (table == nullptr) return corrupt("tensor 'token_embd.weight' is missing");
  if (table->shape[1] > static_cast<std::uint64_t>(kMaxWidth))
    return corrupt("tensor 'token_embd.weight' has {} rows; at most {} are allowed",
                   table->shape[1], kMaxWidth);
  p.vocabulary = static_cast<std::int32_t>(table->shape[1]);

  STRATA_TRY(read_attention(manifest, mix, p));
  const auto count = static_cast<std::size_t>(p.layers);
  STRATA_ASSIGN(p.feed_forward, manifest.per_layer("feed_forward_length", count,
                                                   mix == LayerMix::kHybrid ? 0 : 1, kMaxWidth));
  const std::string_view key = manifest.has("attention.layer_norm_epsilon") &&
                                       !manifest.has("attention.layer_norm_rms_epsilon")
                                   ? "attention.layer_norm_epsilon"
                                   : "attention.layer_norm_rms_epsilon";
  STRATA_ASSIGN(const double epsilon, manifest.real(key));
  if (epsilon < 0 || epsilon > 1)
    return corrupt("{} is {}; it must lie in [0, 1]", manifest.full_key(key), epsilon);
  p.epsilon = static_cast<float>(epsilon);
  STRATA_TRY(read_experts(manifest, p));
  p.nextn_layers = static_cast<std::int32_t>(nextn);
  p.layers -= p.nextn_layers;
  return p;
}

Result<WindowPattern> read_windows(const ModelManifest& manifest, const TransformerParams& params,
                                   std::int32_t size, std::int64_t period, double rope_base) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  WindowPattern windows;
  STRATA_ASSIGN(const auto wanted,
                manifest.integer_or("attention.sliding_window", size, 0, std::int64_t{1} << 30));
  windows.size = static_cast<std::int32_t>(wanted);
  STRATA_ASSIGN(windows.rope_base, manifest.real_or("rope.freq_base_swa", rope_base));
  if (windows.rope_base <= 0)
    return corrupt("{} must be positive", manifest.full_key("rope.freq_base_swa"));
  const auto layers = static_cast<std::size_t>(params.layers);
  const MetadataEntry* entry = manifest.metadata().find(manifest.full_key(kPattern));
  if (entry != nullptr && entry->type == ValueType::kArray) {
    STRATA_ASSIGN(windows.windowed, listed_windows(std::get<MetadataArray>(entry->value), layers,
                                                   manifest.full_key(kPattern)));
  } else {
    STRATA_ASSIGN(period, manifest.integer_or(kPattern, period, 0, 4096));
    for (std::int64_t layer = 0; layer < params.layers; ++layer)
      windows.windowed.push_back(period == 0 || (layer + 1) % period != 0);
  }
  if (windows.size == 0) windows.windowed.assign(layers, false);
  return windows;
}

ModelBuilder::ModelBuilder(const ModelManifest& manifest, const TransformerParams& params)
    : manifest_(manifest), layers_(params.layers), nextn_layers_(params.nextn_layers), graph_([&] {
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
  // A vector has one row, so its slices are the file's second dimension.
  const bool vector = weight.role == WeightRole::kVector;
  const bool fits = tensor->shape[0] == extent(weight.columns) &&
                    tensor->shape[1] == extent(vector ? weight.slices : weight.rows) &&
                    tensor->shape[2] == extent(vector ? 1 : weight.slices) && tensor->shape[3] == 1;
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

WeightId ModelBuilder::table(const std::string& name, std::int64_t rows, std::int64_t elements) {
  claimed_.insert(name);
  Weight flat{name, WeightRole::kVector, FormatId::F32, rows * elements, 1, 1};
  const TensorInfo* tensor = manifest_.file().find_tensor(name);
  // Rows may be counted in any dimension but the first.
  const bool fits = tensor != nullptr && tensor->shape[0] == static_cast<std::uint64_t>(elements) &&
                    tensor->rows() == static_cast<std::uint64_t>(rows);
  if (fits)
    flat.format = tensor->format;
  else if (status_.ok())
    status_ = corrupt("tensor '{}' [{}, {}] is missing or has another shape", name, elements, rows);
  return graph_.add_weight(std::move(flat));
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

// A format of little range, as NVFP4, leaves a factor of the whole tensor to a tensor beside it.
// The factor for the inputs is of use only where activations become 4-bit floats as well.
std::optional<WeightId> ModelBuilder::scale(const std::string& name, std::int64_t slices) {
  ignore(name + ".input_scale");
  return optional_vector(name + ".scale", slices);
}

GraphBuilder::Linear ModelBuilder::expert_linear(const std::string& name, std::int64_t rows,
                                                 std::int64_t columns, std::int64_t experts) {
  return {matrix(name + ".weight", rows, columns, experts),
          claim(name + ".bias", {{}, WeightRole::kVector, FormatId::F32, rows, 1, experts}, false),
          scale(name, experts)};
}

bool ModelBuilder::is_nextn(std::string_view tensor) const {
  constexpr std::string_view kPrefix = "blk.";
  if (!tensor.starts_with(kPrefix)) return false;
  std::int32_t layer = -1;
  std::from_chars(tensor.data() + kPrefix.size(), tensor.data() + tensor.size(), layer);
  return layer >= layers_ && layer < layers_ + nextn_layers_;
}

Result<Graph> ModelBuilder::finish(ValueId output) {
  STRATA_TRY(status_);
  for (const TensorInfo& tensor : manifest_.file().tensors())
    if (!claimed_.contains(tensor.name) && !is_nextn(tensor.name))
      return unsupported(
          "tensor '{}' is not known for architecture '{}'; computing without it would give wrong "
          "answers",
          tensor.name, manifest_.architecture());
  return graph_.finish(output);
}

std::string layer_tensor(std::int32_t layer, std::string_view name) {
  return fmt::format("blk.{}.{}", layer, name);
}

ValueId layer_norm(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                   std::string_view name, ValueId in) {
  const auto weight = model.vector(layer_tensor(layer, name) + ".weight", params.embedding);
  return model.graph().norm(in, weight, params.epsilon);
}

ValueId rope_table(ModelBuilder& model, const RopeParams& params) {
  RopeTableOp op = rope_table_op(params);
  const std::int64_t pairs = params.dimensions / 2;
  op.factors = model.optional_vector("rope_freqs.weight", pairs);
  if (!op.factors && model.has("rope_factors_long.weight")) {
    op.factors = model.vector("rope_factors_short.weight", pairs);
    op.long_factors = model.vector("rope_factors_long.weight", pairs);
  }
  return model.graph().rope_table(op);
}

namespace {

struct QueryKeyValue {
  ValueId query;
  ValueId key;
  ValueId value;
};

QueryKeyValue project(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                      ValueId normed, std::int32_t heads, std::int32_t kv_heads) {
  GraphBuilder& graph = model.graph();
  const std::int32_t query = heads * params.key_size;
  const std::int32_t key = kv_heads * params.key_size;
  const std::int32_t value = kv_heads * params.value_size;
  if (model.has(layer_tensor(layer, "attn_qkv.weight"))) {
    const auto all =
        graph.matmul(normed, model.linear(layer_tensor(layer, "attn_qkv"),
                                          std::int64_t{query} + key + value, params.embedding));
    return {graph.slice(all, 0, query), graph.slice(all, query, key),
            graph.slice(all, query + key, value)};
  }
  const GraphBuilder::Linear inputs[] = {
      model.linear(layer_tensor(layer, "attn_q"), query, params.embedding),
      model.linear(layer_tensor(layer, "attn_k"), key, params.embedding),
      model.linear(layer_tensor(layer, "attn_v"), value, params.embedding)};
  const auto outs = graph.matmul(normed, inputs);
  return {outs[0], outs[1], outs[2]};
}

void norm_part(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
               std::string_view name, ValueId value, std::int32_t parts) {
  const auto weight = model.vector(layer_tensor(layer, name), model.graph().width(value) / parts);
  model.graph().norm_heads(value, weight, params.epsilon, parts);
}

}  // namespace

ValueId attention_block(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                        ValueId normed, const AttentionBlock& block) {
  GraphBuilder& graph = model.graph();
  const auto heads = static_cast<std::int32_t>(params.heads[static_cast<std::size_t>(layer)]);
  const auto kv_heads = static_cast<std::int32_t>(params.kv_heads[static_cast<std::size_t>(layer)]);
  const QueryKeyValue in = project(model, params, layer, normed, heads, kv_heads);
  if (block.norm != QueryKeyNorm::kNone) {
    const bool each_head = block.norm == QueryKeyNorm::kEachHead;
    norm_part(model, params, layer, "attn_q_norm.weight", in.query, each_head ? heads : 1);
    norm_part(model, params, layer, "attn_k_norm.weight", in.key, each_head ? kv_heads : 1);
  }
  if (block.rope_table.valid()) {
    const std::int32_t dimensions = params.rope.dimensions;
    graph.rope({block.rope_table, in.query, heads, dimensions, block.rope_style});
    graph.rope({block.rope_table, in.key, kv_heads, dimensions, block.rope_style});
  }
  AttentionOp op;
  op.query = in.query;
  op.key = in.key;
  op.value = in.value;
  op.heads = heads;
  op.kv_heads = kv_heads;
  op.head_size = params.key_size;
  op.value_size = params.value_size;
  op.window = block.window;
  op.causal = params.causal;
  if (!op.causal && op.window > 0)
    model.fail(unsupported(
        "attention to later tokens within a sliding window of {} is not supported", op.window));
  op.scale = params.attention_scale;
  op.softcap = params.attention_softcap;
  if (block.sinks) op.sinks = model.vector(layer_tensor(layer, "attn_sinks.weight"), heads);
  const auto attended = graph.attention(op);
  return graph.matmul(attended, model.linear(layer_tensor(layer, "attn_output"), params.embedding,
                                             std::int64_t{heads} * params.value_size));
}

namespace {

// Gate and up are the halves of a row.
ValueId gate_halves(GraphBuilder& graph, ValueId both, GateFunction function) {
  const std::int32_t width = graph.width(both) / 2;
  const auto gate = graph.slice(both, 0, width);
  return graph.gate(gate, graph.slice(both, width, width), function);
}

// down(function(gate(x)) * up(x)) with ffn_gate`suffix` and so on
ValueId feed_forward(ModelBuilder& model, std::int32_t layer, std::string_view suffix,
                     ValueId normed, std::int64_t width, GateFunction function) {
  GraphBuilder& graph = model.graph();
  const std::int64_t embedding = graph.width(normed);
  const auto name = [&](std::string_view part) {
    return layer_tensor(layer, fmt::format("ffn_{}{}", part, suffix));
  };
  const GraphBuilder::Linear inputs[] = {model.linear(name("gate"), width, embedding),
                                         model.linear(name("up"), width, embedding)};
  const auto gate_up = graph.matmul(normed, inputs);
  const auto gated = graph.gate(gate_up[0], gate_up[1], function);
  return graph.matmul(gated, model.linear(name("down"), embedding, width));
}

}  // namespace

ValueId gated_feed_forward(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                           ValueId normed, GateFunction function) {
  return feed_forward(model, layer, "", normed,
                      params.feed_forward[static_cast<std::size_t>(layer)], function);
}

ValueId shared_expert(ModelBuilder& model, std::int32_t layer, ValueId normed, std::int64_t width) {
  return feed_forward(model, layer, "_shexp", normed, width, GateFunction::kSilu);
}

ValueId fused_feed_forward(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                           ValueId normed, GateFunction function) {
  GraphBuilder& graph = model.graph();
  const std::int64_t width = params.feed_forward[static_cast<std::size_t>(layer)];
  const auto both = graph.matmul(
      normed, model.linear(layer_tensor(layer, "ffn_up"), 2 * width, params.embedding));
  return graph.matmul(gate_halves(graph, both, function),
                      model.linear(layer_tensor(layer, "ffn_down"), params.embedding, width));
}

Result<ExpertBlock> read_expert_block(const ModelManifest& manifest,
                                      const TransformerParams& params, ExpertBlock block) {
  STRATA_ASSIGN(const auto function, manifest.integer_or("expert_gating_func", 0, 0, 255));
  switch (function) {
    case 0: break;
    case 1: block.function = RouteFunction::kSoftmax; break;
    case 2: block.function = RouteFunction::kSigmoid; break;
    case 3: block.function = RouteFunction::kSoftmaxOfChosen; break;
    default:
      return unsupported(
          "{} is {}; 1 (softmax), 2 (sigmoid) and 3 (softmax of the chosen) are known",
          manifest.full_key("expert_gating_func"), function);
  }
  STRATA_ASSIGN(block.renormalize, manifest.boolean_or("expert_weights_norm", block.renormalize));
  STRATA_ASSIGN(const double scale, manifest.real_or("expert_weights_scale", 0));
  if (scale != 0) block.scale = static_cast<float>(scale);
  if (params.experts == 0) return block;
  STRATA_ASSIGN(const auto groups, manifest.integer_or("expert_group_count", 1, 0, params.experts));
  if (groups <= 1) return block;
  if (params.experts % groups != 0)
    return corrupt("{} is {}, which does not divide {} experts",
                   manifest.full_key("expert_group_count"), groups, params.experts);
  const std::int64_t fewest = ceil_div<std::int64_t>(params.experts_used, params.experts / groups);
  STRATA_ASSIGN(const auto used, manifest.integer("expert_group_used_count", fewest, groups));
  block.groups = static_cast<std::int32_t>(groups);
  block.groups_used = static_cast<std::int32_t>(used);
  return block;
}

ValueId expert_feed_forward(ModelBuilder& model, const TransformerParams& params,
                            std::int32_t layer, ValueId normed, const ExpertBlock& block) {
  GraphBuilder& graph = model.graph();
  const std::int64_t width = params.expert_feed_forward;
  const auto experts = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
    return model.expert_linear(layer_tensor(layer, name), rows, columns, params.experts);
  };
  RouteOp route;
  route.scores = graph.matmul(
      normed, model.linear(layer_tensor(layer, "ffn_gate_inp"), params.experts, params.embedding));
  route.bias = model.optional_vector(layer_tensor(layer, "exp_probs_b.bias"), params.experts);
  route.used = params.experts_used;
  route.function = block.function;
  route.renormalize = block.renormalize;
  route.scale = block.scale;
  route.groups = block.groups;
  route.groups_used = block.groups_used;
  // DeepSeek-V3 scores a group by its two best experts, V2, which has no bias, by its best.
  route.group_best = route.bias ? std::min(2, params.experts / block.groups) : 1;
  const auto routing = graph.route(route);
  ValueId gated;
  if (model.has(layer_tensor(layer, "ffn_gate_up_exps.weight"))) {
    const GraphBuilder::Linear input[] = {experts("ffn_gate_up_exps", 2 * width, params.embedding)};
    gated = gate_halves(graph, graph.expert_matmul(normed, routing, input).front(), block.gate);
  } else {
    const GraphBuilder::Linear inputs[] = {experts("ffn_gate_exps", width, params.embedding),
                                           experts("ffn_up_exps", width, params.embedding)};
    const auto gate_up = graph.expert_matmul(normed, routing, inputs);
    gated = graph.gate(gate_up[0], gate_up[1], block.gate);
  }
  const GraphBuilder::Linear down[] = {experts("ffn_down_exps", params.embedding, width)};
  const auto routed = graph.combine(graph.expert_matmul(gated, routing, down).front(), routing);
  if (block.shared_width > 0)
    graph.add_to(routed, shared_expert(model, layer, normed, block.shared_width));
  return routed;
}

ValueId output_head(ModelBuilder& model, const TransformerParams& params, WeightId embedding,
                    ValueId x, const std::string& norm) {
  GraphBuilder& graph = model.graph();
  const auto rows = graph.select_logit_rows(x);
  const auto normed = graph.norm(rows, model.vector(norm, params.embedding), params.epsilon);
  const auto head = model.optional_matrix("output.weight", params.vocabulary, params.embedding);
  const auto logits = graph.matmul(normed, {head.value_or(embedding), std::nullopt,
                                            head ? model.scale("output", 1) : std::nullopt});
  if (params.logit_softcap > 0) graph.softcap(logits, params.logit_softcap);
  return logits;
}

}  // namespace strata
