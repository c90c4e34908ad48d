#include "graph/builder.h"

#include <algorithm>

namespace strata {

WeightId GraphBuilder::add_weight(Weight weight) {
  graph_.weights.push_back(std::move(weight));
  return WeightId{static_cast<std::int32_t>(graph_.weights.size()) - 1};
}

ValueId GraphBuilder::add_value(RowDomain domain, std::int32_t width) {
  graph_.values.push_back({domain, width});
  return ValueId{static_cast<std::int32_t>(graph_.values.size()) - 1};
}

ValueId GraphBuilder::embed(WeightId table, float scale) {
  const auto out =
      add_value(RowDomain::kTokens, static_cast<std::int32_t>(graph_.weight(table).columns));
  graph_.ops.push_back(EmbedOp{table, out, scale});
  return out;
}

ValueId GraphBuilder::norm(ValueId in, WeightId weight, float epsilon) {
  const auto out = add_value(graph_.value(in).domain, width(in));
  graph_.ops.push_back(NormOp{in, out, weight, epsilon, 1});
  return out;
}

void GraphBuilder::norm_heads(ValueId value, WeightId weight, float epsilon, std::int32_t heads) {
  graph_.ops.push_back(NormOp{value, value, weight, epsilon, heads});
}

std::vector<ValueId> GraphBuilder::matmul(ValueId in, std::span<const Linear> linears) {
  MatMulOp op{in, {}};
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

ValueId GraphBuilder::rope_table(RopeTableOp op) {
  op.out = add_value(RowDomain::kTokens, op.dimensions);
  graph_.ops.push_back(op);
  return op.out;
}

void GraphBuilder::rope(RopeOp op) { graph_.ops.push_back(op); }

ValueId GraphBuilder::attention(AttentionOp op) {
  op.cache_group = group_for({op.kv_heads, op.head_size, op.value_size, op.window});
  auto& group = graph_.cache_groups[static_cast<std::size_t>(op.cache_group)];
  op.cache_layer = group.layers++;
  op.out = add_value(RowDomain::kTokens, op.heads * op.value_size);
  graph_.ops.push_back(op);
  return op.out;
}

void GraphBuilder::add_to(ValueId accumulator, ValueId value) {
  graph_.ops.push_back(AddOp{accumulator, value, accumulator});
}

ValueId GraphBuilder::gate(ValueId gate, ValueId up, GateFunction function) {
  graph_.ops.push_back(GateOp{gate, up, gate, function});
  return gate;
}

GraphBuilder::Routing GraphBuilder::route(ValueId scores, std::int32_t used, bool renormalize) {
  const Routing routing{add_value(RowDomain::kTokens, used), add_value(RowDomain::kTokens, used)};
  graph_.ops.push_back(
      RouteOp{scores, routing.ids, routing.weights, width(scores), used, renormalize});
  graph_.experts_used = std::max(graph_.experts_used, used);
  return routing;
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

Result<Graph> GraphBuilder::finish(ValueId logits) {
  graph_.logits = logits;
  graph_.vocabulary = width(logits);
  STRATA_TRY(validate(graph_));
  return std::move(graph_);
}

std::int32_t GraphBuilder::group_for(const CacheSpec& spec) {
  auto& groups = graph_.cache_groups;
  const auto found = std::ranges::find(groups, spec, &CacheGroupSpec::spec);
  if (found == groups.end()) {
    groups.push_back({spec, 0});
    return static_cast<std::int32_t>(groups.size()) - 1;
  }
  return static_cast<std::int32_t>(found - groups.begin());
}

}  // namespace strata
