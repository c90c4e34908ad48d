// What architectures share: reading hyper-parameters, claiming tensors, and the usual layer blocks.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gguf/manifest.h"
#include "graph/builder.h"

namespace strata {

// Hyper-parameters of a decoder-only transformer, under GGUF's common keys.
struct TransformerParams {
  std::int32_t layers = 0;
  std::int32_t embedding = 0;
  std::int32_t vocabulary = 0;
  std::int32_t context = 0;
  std::vector<std::int64_t> heads;         // per layer
  std::vector<std::int64_t> kv_heads;      // per layer
  std::vector<std::int64_t> feed_forward;  // per layer
  std::int32_t key_size = 0;
  std::int32_t value_size = 0;
  std::int32_t rope_dimensions = 0;
  double rope_base = 10000.0;
  double rope_scale = 1.0;  // 1 / factor of linear scaling
  float epsilon = 0;
  std::int32_t experts = 0;
  std::int32_t experts_used = 0;
  std::int32_t expert_feed_forward = 0;
};

// Fails on a missing or absurd value and on rope scaling that is not none or linear.
Result<TransformerParams> read_transformer_params(const ModelManifest& manifest);

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
  std::optional<WeightId> optional_vector(const std::string& name, std::int64_t elements);

  // `name`.weight, with `name`.scale and `name`.bias where the file has them.
  GraphBuilder::Linear linear(const std::string& name, std::int64_t rows, std::int64_t columns);
  // The same of `experts` slices, without bias.
  GraphBuilder::Linear experts(const std::string& name, std::int64_t rows, std::int64_t columns,
                               std::int64_t experts);
  // `name`.scale where the file has it: a factor per slice of `name`.weight.
  std::optional<WeightId> scale(const std::string& name, std::int64_t slices);

  // A tensor the file may hold and Strata need not read, e.g. what other programs derive from it.
  void ignore(const std::string& name) { claimed_.insert(name); }

  // Fails on the first recorded error and on tensors that nothing claimed.
  Result<Graph> finish(ValueId logits);

 private:
  WeightId add(const TensorInfo* tensor, Weight weight);
  std::optional<WeightId> claim(const std::string& name, Weight weight, bool required);

  const ModelManifest& manifest_;
  GraphBuilder graph_;
  std::set<std::string, std::less<>> claimed_;
  Status status_;
};

// "blk.<layer>.<name>"
std::string layer_tensor(std::int32_t layer, std::string_view name);

struct AttentionBlock {
  RopeStyle rope_style = RopeStyle::kHalves;
  ValueId rope_table;
  bool head_norms = false;  // RMS norms attn_q_norm and attn_k_norm over each head
  std::int32_t window = 0;
  float scale = 0;
  float softcap = 0;
};
// Self-attention of a layer on its normed input, output projection included.
ValueId attention_block(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                        ValueId normed, const AttentionBlock& block);

// down(function(gate(x)) * up(x))
ValueId gated_feed_forward(ModelBuilder& model, const TransformerParams& params, std::int32_t layer,
                           ValueId normed, GateFunction function);

// Softmax-routed mixture of gated feed-forward experts.
ValueId expert_feed_forward(ModelBuilder& model, const TransformerParams& params,
                            std::int32_t layer, ValueId normed, bool renormalize);

// Final norm and output head on the wanted rows; the head is the embedding where the file has none.
ValueId output_head(ModelBuilder& model, const TransformerParams& params, WeightId embedding,
                    ValueId x);

}  // namespace strata
