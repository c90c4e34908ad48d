#include "graph/hidden_states.h"

#include <algorithm>

#include "graph/op_access.h"

namespace strata {
namespace {

// The operation that makes the output; those behind it change the output in place.
std::ptrdiff_t maker_of_output(const Graph& graph) {
  auto index = std::ssize(graph.ops) - 1;
  for (; index >= 0; --index) {
    const OpAccess access = op_access(graph.ops[static_cast<std::size_t>(index)]);
    if (std::ranges::find(access.writes, graph.output) != access.writes.end() &&
        std::ranges::find(access.reads, graph.output) == access.reads.end())
      break;
  }
  return index;
}

bool names(const std::vector<Projection>& projections, WeightId id) {
  return std::ranges::any_of(projections, [&](const Projection& p) {
    return p.weight == id || p.bias == id || p.scale == id;
  });
}

// Whether the operation looks rows up in the weight or multiplies by it.
bool names(const Op& op, WeightId id) {
  if (const auto* embed = std::get_if<EmbedOp>(&op)) return embed->table == id;
  if (const auto* matmul = std::get_if<MatMulOp>(&op)) return names(matmul->projections, id);
  if (const auto* experts = std::get_if<ExpertMatMulOp>(&op))
    return names(experts->projections, id);
  return false;
}

}  // namespace

Result<Graph> without_output_head(Graph graph) {
  const std::ptrdiff_t maker = maker_of_output(graph);
  if (maker < 0) return internal_error("graph of {}: nothing makes its output", graph.architecture);
  const auto* matmul = std::get_if<MatMulOp>(&graph.ops[static_cast<std::size_t>(maker)]);
  if (matmul == nullptr) return graph;
  const MatMulOp head = *matmul;
  graph.ops.resize(static_cast<std::size_t>(maker));
  graph.output = head.in;
  // Architectures claim the head last, so that taking its weights off the end moves no other id.
  const auto unused = [&](WeightId id) {
    return names(head.projections, id) &&
           std::ranges::none_of(graph.ops, [&](const Op& op) { return names(op, id); });
  };
  while (!graph.weights.empty() &&
         unused(WeightId{static_cast<std::int32_t>(graph.weights.size()) - 1}))
    graph.weights.pop_back();
  for (std::size_t i = 0; i < graph.weights.size(); ++i)
    if (unused(WeightId{static_cast<std::int32_t>(i)}))
      return internal_error("graph of {}: the head's '{}' is not its last weight",
                            graph.architecture, graph.weights[i].name);
  STRATA_TRY(validate(graph));
  return graph;
}

}  // namespace strata
