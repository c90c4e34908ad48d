// GraphBuilder: appends operations and creates their output values. Widths follow from the inputs
// and weights; validate() checks the whole.
#pragma once

#include <span>

#include "graph/graph.h"

namespace strata {

class GraphBuilder {
 public:
  explicit GraphBuilder(Graph header) : graph_(std::move(header)) {}

  WeightId add_weight(Weight weight);
  ValueId add_value(RowDomain domain, std::int32_t width);
  std::int32_t width(ValueId id) const { return graph_.value(id).width; }

  ValueId embed(WeightId table, float scale, EmbedIndex index = EmbedIndex::kToken);
  ValueId norm(ValueId in, WeightId weight, float epsilon);
  ValueId layer_norm(ValueId in, WeightId weight, WeightId bias, float epsilon,
                     std::int32_t heads = 1);
  void norm_heads(ValueId value, std::optional<WeightId> weight, float epsilon, std::int32_t heads);

  struct Linear {
    WeightId weight;
    std::optional<WeightId> bias = std::nullopt;
    std::optional<WeightId> scale = std::nullopt;
  };
  std::vector<ValueId> matmul(ValueId in, std::span<const Linear> linears);
  ValueId matmul(ValueId in, Linear linear);
  // Part by part, with one slice of the weight for each.
  ValueId matmul_parts(ValueId in, WeightId weight);

  // Elements [offset, offset + width) of each of `parts` equal parts of a row.
  ValueId slice(ValueId in, std::int32_t offset, std::int32_t width, std::int32_t parts = 1);
  ValueId concat(std::vector<ConcatPiece> pieces, std::int32_t parts);

  ValueId rope_table(RopeTableOp op);  // `out` is filled in
  void rope(RopeOp op);
  // Fills in out, cache_group and cache_layer.
  ValueId attention(AttentionOp op);
  void add_to(ValueId accumulator, ValueId value);  // accumulator += value
  void scale(ValueId value, float factor);          // value *= factor
  // Into `gate`, or into `up` where the gate has one element.
  ValueId gate(ValueId gate, ValueId up, GateFunction function);

  struct Routing {
    ValueId ids;
    ValueId weights;
  };
  Routing route(RouteOp op);  // ids, weights and experts are filled in
  std::vector<ValueId> expert_matmul(ValueId in, const Routing& routing,
                                     std::span<const Linear> linears);
  ValueId combine(ValueId in, const Routing& routing);

  ValueId select_logit_rows(ValueId in);
  void softcap(ValueId value, float cap);

  void activate(ValueId value, UnaryFunction function, std::optional<WeightId> bias = {});
  // Fill in out and slot.
  ValueId short_conv(ShortConvOp op);
  ValueId ssm_scan(SsmScanOp op);
  ValueId gated_delta(GatedDeltaOp op);
  ValueId lerp(ValueId a, ValueId b, ValueId share);  // into `share`
  std::vector<ValueId> token_shift(ValueId in, WeightId weight, std::int32_t outs);
  struct Rwkv7Out {
    ValueId out;
    ValueId bonus;
  };
  Rwkv7Out rwkv7(Rwkv7Op op);

  // Validates. The builder is spent afterwards.
  Result<Graph> finish(ValueId output);

 private:
  // A further layer of the group of this spec.
  StateSlot add_layer(const CacheSpec& spec);
  StateSlot add_state(std::int64_t size);

  Graph graph_;
};

}  // namespace strata
