// What architectures share: reading hyper-parameters, claiming tensors, and the usual layer blocks.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/manifest.h"
#include "graph/builder.h"
#include "models/rope.h"

namespace strata {

// Hyper-parameters of a transformer, under GGUF's common keys.
struct TransformerParams {
  std::int32_t layers = 0;        // without those that only predict tokens further ahead:
  std::int32_t nextn_layers = 0;  // whose tensors are not read
  std::int32_t embedding = 0;
  std::int32_t vocabulary = 0;
  std::int32_t context = 0;
  std::vector<std::int64_t> heads;         // per layer; 0 where a hybrid has no attention
  std::vector<std::int64_t> kv_heads;      // likewise
  std::vector<std::int64_t> feed_forward;  // per layer
  std::int32_t key_size = 0;
  std::int32_t value_size = 0;
  bool causal = true;  // false: tokens see those behind them too
  RopeParams rope;
  float attention_scale = 0;  // 1 / sqrt(key_size) unless the file says otherwise
  float attention_softcap = 0;
  float logit_softcap = 0;
  float epsilon = 0;
  std::int32_t experts = 0;
  std::int32_t experts_used = 0;
  std::int32_t expert_feed_forward = 0;
};

// Whether every layer has attention and feed-forward, or some have 0 heads or a width of 0.
enum class LayerMix : std::uint8_t { kUniform, kHybrid };

// Fails on a missing or absurd value.
Result<TransformerParams> read_transformer_params(const ModelManifest& manifest,
                                                  LayerMix mix = LayerMix::kUniform);

// Which layers see a window of positions only.
struct WindowPattern {
  std::int32_t size = 0;       // 0: none
  std::vector<bool> windowed;  // by layer
  double rope_base = 0;        // of the windowed layers
};
// `size` where the file has none; every `period`-th layer sees everything unless the file lists
// its layers or has another period; `rope_base` where the file has none for windowed layers.
Result<WindowPattern> read_windows(const ModelManifest& manifest, const TransformerParams& params,
                                   std::int32_t size, std::int64_t period, double rope_base);

// Claims the manifest's tensors while the graph is built. The first error sticks and is returned by
// finish(), so that an architecture's file reads as the list of its layers.
class ModelBuilder {
 public:
  ModelBuilder(const ModelManifest& manifest, const TransformerParams& params);

  GraphBuilder& graph() { return graph_; }

  WeightId matrix(const std::string& name, std::int64_t rows, std::int64_t columns,
                  std::int64_t slices = 1);
  std::optional<WeightId> optional_matrix(const std::string& name, std::int64_t rows,
                                          std::int64_t columns);
  WeightId vector(const std::string& name, std::int64_t elements);
  // A matrix read as one vector of f32, row after row.
  WeightId table(const std::string& name, std::int64_t rows, std::int64_t elements);
  std::optional<WeightId> optional_vector(const std::string& name, std::int64_t elements);

  // `name`.weight, with `name`.scale and `name`.bias where the file has them.
  GraphBuilder::Linear linear(const std::string& name, std::int64_t rows, std::int64_t columns);
  // The same for every expert: slices of each.
  GraphBuilder::Linear expert_linear(const std::string& name, std::int64_t rows,
                                     std::int64_t columns, std::int64_t experts);
  // `name`.scale where the file has it: a factor per slice of `name`.weight.
  std::optional<WeightId> scale(const std::string& name, std::int64_t slices);

  bool has(const std::string& name) const { return manifest_.file().find_tensor(name) != nullptr; }

  // A tensor the file may hold and Strata need not read, e.g. what other programs derive from it.
  void ignore(const std::string& name) { claimed_.insert(name); }

  // Records an error, of which the first counts.
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // Fails on the first recorded error and on tensors that nothing claimed.
  Result<Graph> finish(ValueId output);

 private:
  WeightId add(const TensorInfo* tensor, Weight weight);
  std::optional<WeightId> claim(const std::string& name, Weight weight, bool required);

  // Whether the tensor belongs to a layer that only predicts tokens further ahead.
  bool is_nextn(std::string_view tensor) const;

  const ModelManifest& manifest_;
  const std::int32_t layers_;
  const std::int32_t nextn_layers_;
  GraphBuilder graph_;
  std::set<std::string, std::less<>> claimed_;
  Status status_;
};

// "blk.<layer>.<name>"
std::string layer_tensor(std::int32_t layer, std::string_view name);

// A layer's RMS norm `name`.weight.
ValueId layer_norm(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                   std::string_view name, ValueId in);

// The rope table of the params, with the divisors the file brings: rope_freqs (Llama 3), or
// rope_factors_short and rope_factors_long (LongRoPE).
ValueId rope_table(ModelBuilder& model, const RopeParams& params);

// RMS norms attn_q_norm and attn_k_norm.
enum class QueryKeyNorm : std::uint8_t { kNone, kEachHead, kWholeRow };

struct AttentionBlock {
  RopeStyle rope_style = RopeStyle::kHalves;
  ValueId rope_table;  // invalid: positions do not count
  QueryKeyNorm norm = QueryKeyNorm::kNone;
  std::int32_t window = 0;
  bool sinks = false;  // attn_sinks
};
// Self-attention of a layer on its normed input, output projection included. Reads attn_q, attn_k
// and attn_v, or all three from attn_qkv where the file has that.
ValueId attention_block(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                        ValueId normed, const AttentionBlock& block);

// down(function(gate(x)) * up(x))
ValueId gated_feed_forward(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                           ValueId normed, GateFunction function);

// The same with the gate's rows and then those of up in ffn_up.
ValueId fused_feed_forward(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                           ValueId normed, GateFunction function);

// What an architecture's routers do unless the file says otherwise.
struct ExpertBlock {
  RouteFunction function = RouteFunction::kSoftmax;
  bool renormalize = true;
  float scale = 1.0f;
  std::int32_t groups = 1;
  std::int32_t groups_used = 1;
  GateFunction gate = GateFunction::kSilu;
  std::int64_t shared_width = 0;  // of the feed-forward that every token passes besides; 0: none
};
Result<ExpertBlock> read_expert_block(const ModelManifest& manifest,
                                      const TransformerParams& params, ExpertBlock defaults);

// Routed mixture of gated feed-forward experts, and the shared one where there is one.
ValueId expert_feed_forward(ModelBuilder& model, const TransformerParams& params,
                            std::int32_t layer, ValueId normed, const ExpertBlock& block);

// The feed-forward of ffn_gate_shexp and so on.
ValueId shared_expert(ModelBuilder& model, std::int32_t layer, ValueId normed, std::int64_t width);

// Final norm, output head and softcap on the wanted rows; the head is the embedding where the file
// has none.
ValueId output_head(ModelBuilder& model, const TransformerParams& params, WeightId embedding,
                    ValueId x, const std::string& norm = "output_norm.weight");

}  // namespace strata
