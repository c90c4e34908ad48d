#include "graph/builder.h"

#include <algorithm>
#include <limits>

namespace strata {

WeightId GraphBuilder::add_weight(Weight weight) {
  graph_.weights.push_back(std::move(weight));
  return WeightId{static_cast<std::int32_t>(graph_.weights.size()) - 1};
}

ValueId GraphBuilder::add_value(RowDomain domain, std::int32_t width) {
  graph_.values.push_back({domain, width});
  return ValueId{static_cast<std::int32_t>(graph_.values.size()) - 1};
}

ValueId GraphBuilder::embed(WeightId table, float scale, EmbedIndex index) {
  const Weight& weight = graph_.weight(table);
  const auto out = add_value(RowDomain::kTokens, static_cast<std::int32_t>(weight.columns));
  graph_.ops.push_back(EmbedOp{table, out, scale, index});
  const auto limit = [&](std::int32_t& least) {
    const auto rows = static_cast<std::int32_t>(weight.rows);
    least = least == 0 ? rows : std::min(least, rows);
  };
  if (index == EmbedIndex::kToken) limit(graph_.vocabulary);
  if (index == EmbedIndex::kPosition) limit(graph_.max_positions);
  return out;
}

ValueId GraphBuilder::norm(ValueId in, WeightId weight, float epsilon) {
  const auto out = add_value(graph_.value(in).domain, width(in));
  graph_.ops.push_back(NormOp{in, out, weight, epsilon, 1, {}});
  return out;
}

ValueId GraphBuilder::layer_norm(ValueId in, WeightId weight, WeightId bias, float epsilon,
                                 std::int32_t heads) {
  const auto out = add_value(graph_.value(in).domain, width(in));
  graph_.ops.push_back(NormOp{in, out, weight, epsilon, heads, bias});
  return out;
}

void GraphBuilder::norm_heads(ValueId value, std::optional<WeightId> weight, float epsilon,
                              std::int32_t heads) {
  graph_.ops.push_back(NormOp{value, value, weight, epsilon, heads, {}});
}

std::vector<ValueId> GraphBuilder::matmul(ValueId in, std::span<const Linear> linears) {
  MatMulOp op{in, {}, 1};
  std::vector<ValueId> outs;
  for (const Linear& linear : linears) {
    const auto rows = static_cast<std::int32_t>(graph_.weight(linear.weight).rows);
    outs.push_back(add_value(graph_.value(in).domain, rows));
    op.projections.push_back({linear.weight, linear.bias, outs.back(), linear.scale});
  }
  graph_.ops.push_back(std::move(op));
  return outs;
}

ValueId GraphBuilder::matmul(ValueId in, Linear linear) {
  return matmul(in, std::span<const Linear>(&linear, 1)).front();
}

ValueId GraphBuilder::matmul_parts(ValueId in, WeightId weight) {
  const Weight& w = graph_.weight(weight);
  const auto parts = static_cast<std::int32_t>(w.slices);
  const auto out = add_value(graph_.value(in).domain, parts * static_cast<std::int32_t>(w.rows));
  graph_.ops.push_back(MatMulOp{in, {{weight, std::nullopt, out, std::nullopt}}, parts});
  return out;
}

ValueId GraphBuilder::slice(ValueId in, std::int32_t offset, std::int32_t width,
                            std::int32_t parts) {
  return concat({{in, this->width(in) / parts, offset, width}}, parts);
}

ValueId GraphBuilder::concat(std::vector<ConcatPiece> pieces, std::int32_t parts) {
  std::int32_t part_width = 0;
  for (const ConcatPiece& piece : pieces) part_width += piece.width;
  const auto out = add_value(graph_.value(pieces.front().in).domain, parts * part_width);
  graph_.ops.push_back(ConcatOp{std::move(pieces), out, parts});
  return out;
}

ValueId GraphBuilder::rope_table(RopeTableOp op) {
  op.out = add_value(RowDomain::kTokens, op.dimensions);
  graph_.ops.push_back(op);
  return op.out;
}

void GraphBuilder::rope(RopeOp op) { graph_.ops.push_back(op); }

ValueId GraphBuilder::attention(AttentionOp op) {
  const StateSlot place =
      add_layer({op.kv_heads, op.head_size, op.value.valid() ? op.value_size : 0, op.window, 0});
  op.cache_group = place.cache_group;
  op.cache_layer = place.cache_layer;
  op.out = add_value(RowDomain::kTokens, op.heads * op.value_size);
  graph_.causal = graph_.causal && op.causal;
  graph_.ops.push_back(op);
  return op.out;
}

void GraphBuilder::add_to(ValueId accumulator, ValueId value) {
  graph_.ops.push_back(AddOp{accumulator, value, accumulator});
}

void GraphBuilder::scale(ValueId value, float factor) {
  graph_.ops.push_back(ScaleOp{value, factor});
}

ValueId GraphBuilder::gate(ValueId gate, ValueId up, GateFunction function) {
  const ValueId out = width(gate) == 1 ? up : gate;
  graph_.ops.push_back(GateOp{gate, up, out, function});
  return out;
}

GraphBuilder::Routing GraphBuilder::route(RouteOp op) {
  op.ids = add_value(RowDomain::kTokens, op.used);
  op.weights = add_value(RowDomain::kTokens, op.used);
  op.experts = width(op.scores);
  graph_.ops.push_back(op);
  graph_.experts_used = std::max(graph_.experts_used, op.used);
  return {op.ids, op.weights};
}

std::vector<ValueId> GraphBuilder::expert_matmul(ValueId in, const Routing& routing,
                                                 std::span<const Linear> linears) {
  ExpertMatMulOp op{in, routing.ids, {}, width(routing.ids)};
  std::vector<ValueId> outs;
  for (const Linear& linear : linears) {
    const auto rows = static_cast<std::int32_t>(graph_.weight(linear.weight).rows);
    outs.push_back(add_value(RowDomain::kRouted, rows));
    op.projections.push_back({linear.weight, linear.bias, outs.back(), linear.scale});
  }
  graph_.ops.push_back(std::move(op));
  return outs;
}

ValueId GraphBuilder::combine(ValueId in, const Routing& routing) {
  const auto out = add_value(RowDomain::kTokens, width(in));
  graph_.ops.push_back(CombineOp{in, routing.weights, out, width(routing.ids)});
  return out;
}

ValueId GraphBuilder::select_logit_rows(ValueId in) {
  const auto out = add_value(RowDomain::kLogits, width(in));
  graph_.ops.push_back(SelectLogitRowsOp{in, out});
  return out;
}

void GraphBuilder::softcap(ValueId value, float cap) {
  graph_.ops.push_back(SoftcapOp{value, cap});
}

void GraphBuilder::activate(ValueId value, UnaryFunction function, std::optional<WeightId> bias) {
  graph_.ops.push_back(ActivateOp{value, function, bias});
}

ValueId GraphBuilder::short_conv(ShortConvOp op) {
  op.slot = add_state((op.kernel - std::int64_t{1}) * width(op.in));
  op.out = add_value(RowDomain::kTokens, width(op.in));
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::ssm_scan(SsmScanOp op) {
  op.slot = add_state(std::int64_t{op.heads} * op.head_size * op.state_size);
  op.out = add_value(RowDomain::kTokens, op.heads * op.head_size);
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::gated_delta(GatedDeltaOp op) {
  op.slot = add_state(std::int64_t{op.value_heads} * op.value_size * op.key_size);
  op.out = add_value(RowDomain::kTokens, op.value_heads * op.value_size);
  graph_.ops.push_back(op);
  return op.out;
}

ValueId GraphBuilder::lerp(ValueId a, ValueId b, ValueId share) {
  graph_.ops.push_back(LerpOp{a, b, share, share});
  return share;
}

std::vector<ValueId> GraphBuilder::token_shift(ValueId in, WeightId weight, std::int32_t outs) {
  TokenShiftOp op{in, {}, weight, add_state(width(in))};
  for (std::int32_t i = 0; i < outs; ++i)
    op.outs.push_back(add_value(RowDomain::kTokens, width(in)));
  graph_.ops.push_back(op);
  return op.outs;
}

GraphBuilder::Rwkv7Out GraphBuilder::rwkv7(Rwkv7Op op) {
  const std::int64_t inner = width(op.receptance);
  op.slot = add_state(inner * (inner / op.heads));
  op.out = add_value(RowDomain::kTokens, width(op.receptance));
  op.bonus = add_value(RowDomain::kTokens, width(op.receptance));
  graph_.ops.push_back(op);
  return {op.out, op.bonus};
}

Result<Graph> GraphBuilder::finish(ValueId output) {
  graph_.output = output;
  STRATA_TRY(validate(graph_));
  return std::move(graph_);
}

// A size that does not fit makes validate() refuse the graph.
StateSlot GraphBuilder::add_state(std::int64_t size) {
  CacheSpec spec;
  spec.state_size = static_cast<std::int32_t>(
      std::min<std::int64_t>(size, std::numeric_limits<std::int32_t>::max()));
  return add_layer(spec);
}

StateSlot GraphBuilder::add_layer(const CacheSpec& spec) {
  auto& groups = graph_.cache_groups;
  auto found = std::ranges::find(groups, spec, &CacheGroupSpec::spec);
  if (found == groups.end()) found = groups.insert(found, {spec, 0});
  return {static_cast<std::int32_t>(found - groups.begin()), found->layers++};
}

}  // namespace strata
