#include "bench_work.h"

#include <algorithm>
#include <cmath>

#include "placement/plan.h"

namespace strata::apps {
namespace {

enum class Reading : std::uint8_t { kEveryStep, kTableRow, kLogits, kExperts };

// How a step reads each weight. What an operation reads whole stays so, also where another one only
// looks up rows, as of an embedding that is the output head too.
std::vector<Reading> readings_of(const Graph& graph) {
  std::vector<Reading> readings(graph.weights.size(), Reading::kEveryStep);
  const auto set = [&](WeightId id, Reading reading) {
    readings[static_cast<std::size_t>(id.value)] = reading;
  };
  const auto set_all = [&](const std::vector<Projection>& projections, Reading reading) {
    for (const Projection& projection : projections) {
      set(projection.weight, reading);
      if (projection.bias) set(*projection.bias, reading);
      if (projection.scale) set(*projection.scale, reading);
    }
  };
  for (const Op& op : graph.ops)
    if (const auto* embed = std::get_if<EmbedOp>(&op)) set(embed->table, Reading::kTableRow);
  for (const Op& op : graph.ops) {
    if (const auto* product = std::get_if<MatMulOp>(&op)) {
      const bool logits = graph.value(product->in).domain == RowDomain::kLogits;
      set_all(product->projections, logits ? Reading::kLogits : Reading::kEveryStep);
    } else if (const auto* experts = std::get_if<ExpertMatMulOp>(&op)) {
      set_all(experts->projections, Reading::kExperts);
    }
  }
  return readings;
}

}  // namespace

Result<WorkCounter> WorkCounter::create(const Graph& graph, CacheFormat cache_format) {
  WorkCounter counter;
  counter.experts_used_ = graph.experts_used;
  const std::vector<Reading> readings = readings_of(graph);
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    STRATA_ASSIGN(const Bytes whole, weight_bytes(weight));
    const auto bytes = static_cast<double>(whole);
    switch (readings[i]) {
      case Reading::kEveryStep: counter.fixed_bytes_ += bytes; break;
      case Reading::kLogits: counter.logit_bytes_ += bytes; break;
      case Reading::kTableRow:
        counter.token_bytes_ += bytes / static_cast<double>(weight.rows * weight.slices);
        break;
      case Reading::kExperts:
        counter.experts_.push_back({static_cast<double>(weight.slices), bytes});
        break;
    }
  }
  for (const CacheGroupSpec& group : graph.cache_groups) {
    const bool is_state = group.spec.state_size > 0;
    const auto block = static_cast<double>(cache_block_bytes(group, cache_format));
    counter.caches_.push_back(
        {is_state ? block : block / kBlockTokens, group.spec.window, is_state});
  }
  counter.count_products(graph);
  return counter;
}

void WorkCounter::count_products(const Graph& graph) {
  const auto add = [&](const Projection& projection, bool every_slice) {
    const Weight& weight = graph.weight(projection.weight);
    const double slices = every_slice ? static_cast<double>(weight.slices) : 1;
    operations_.push_back(
        {graph.value(projection.out).domain,
         2.0 * static_cast<double>(weight.rows) * static_cast<double>(weight.columns) * slices});
  };
  for (const Op& op : graph.ops) {
    if (const auto* product = std::get_if<MatMulOp>(&op))
      for (const Projection& projection : product->projections) add(projection, true);
    if (const auto* experts = std::get_if<ExpertMatMulOp>(&op))
      for (const Projection& projection : experts->projections) add(projection, false);
  }
}

Work WorkCounter::step(std::span<const SliceShape> slices) const {
  double tokens = 0;
  double logits = 0;
  Work work;
  for (const SliceShape& slice : slices) {
    tokens += slice.rows;
    logits += slice.logit_rows;
    const double end = slice.first + slice.rows;
    for (const Cache& cache : caches_) {
      const double hidden = cache.window > 0 ? std::max(0, slice.first + 1 - cache.window) : 0;
      work.bytes += cache.token_bytes * (cache.is_state ? 1 : end - hidden);
    }
  }
  work.bytes += fixed_bytes_ + token_bytes_ * tokens + (logits > 0 ? logit_bytes_ : 0);
  for (const Experts& experts : experts_)
    work.bytes += experts.bytes * (1 - std::pow(1 - experts_used_ / experts.count, tokens));
  for (const PerRow& term : operations_) {
    const double rows = term.domain == RowDomain::kLogits   ? logits
                        : term.domain == RowDomain::kRouted ? tokens * experts_used_
                                                            : tokens;
    work.operations += term.amount * rows;
  }
  return work;
}

}  // namespace strata::apps
