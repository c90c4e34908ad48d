#include "graph/value_layout.h"

#include <algorithm>
#include <map>

#include "graph/op_access.h"

namespace strata {
namespace {

constexpr Bytes kAlignment = 64;

// First-fit allocation of intervals in an arena that grows as needed.
class Arena {
 public:
  Bytes take(Bytes size) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < size) continue;
      const Bytes offset = it->first;
      const Bytes rest = it->second - size;
      free_.erase(it);
      if (rest > 0) free_.emplace(offset + size, rest);
      return offset;
    }
    const Bytes offset = end_;
    end_ += size;
    return offset;
  }

  void give(Bytes offset, Bytes size) {
    const auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + size == next->first) {
      size += next->second;
      free_.erase(next);
    }
    const auto after = free_.lower_bound(offset);
    if (after != free_.begin()) {
      const auto previous = std::prev(after);
      if (previous->first + previous->second == offset) {
        previous->second += size;
        return;
      }
    }
    free_.emplace(offset, size);
  }

  Bytes end() const { return end_; }

 private:
  std::map<Bytes, Bytes> free_;  // offset -> size, never adjacent
  Bytes end_ = 0;
};

std::vector<std::size_t> last_uses(const Graph& graph) {
  std::vector<std::size_t> last(graph.values.size(), 0);
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const OpAccess access = op_access(graph.ops[i]);
    for (const ValueId id : access.reads) last[static_cast<std::size_t>(id.value)] = i;
    for (const ValueId id : access.writes) last[static_cast<std::size_t>(id.value)] = i;
  }
  last[static_cast<std::size_t>(graph.output.value)] = graph.ops.size();
  return last;
}

}  // namespace

std::int64_t domain_rows(const Graph& graph, RowDomain domain, const StepLimits& limits) {
  switch (domain) {
    case RowDomain::kTokens: return limits.rows;
    case RowDomain::kRouted: return std::int64_t{limits.rows} * graph.experts_used;
    case RowDomain::kLogits: return limits.logit_rows;
  }
  return 0;
}

ValueLayout layout_values(const Graph& graph, const StepLimits& limits) {
  ValueLayout layout;
  layout.offsets.resize(graph.values.size());
  std::vector<Bytes> sizes;
  for (const Value& value : graph.values) {
    const std::int64_t stride = round_up<std::int64_t>(value.width, 16);
    layout.strides.push_back(stride);
    const auto rows = domain_rows(graph, value.domain, limits);
    sizes.push_back(round_up<Bytes>(static_cast<Bytes>(rows * stride) * sizeof(float), kAlignment));
  }
  const auto last = last_uses(graph);
  std::vector<bool> placed(graph.values.size(), false);
  Arena arena;
  for (std::size_t i = 0; i < graph.ops.size(); ++i) {
    const OpAccess access = op_access(graph.ops[i]);
    for (const ValueId id : access.writes) {
      const auto v = static_cast<std::size_t>(id.value);
      if (placed[v]) continue;
      placed[v] = true;
      layout.offsets[v] = arena.take(sizes[v]);
    }
    for (const auto* list : {&access.reads, &access.writes}) {
      for (const ValueId id : *list) {
        const auto v = static_cast<std::size_t>(id.value);
        if (!placed[v] || last[v] != i) continue;
        placed[v] = false;
        arena.give(layout.offsets[v], sizes[v]);
      }
    }
  }
  layout.arena_bytes = arena.end();
  return layout;
}

Bytes activation_scratch_bytes(const Graph& graph, const StepLimits& limits) {
  // A quantized row takes at most 40 bytes for 32 elements; two kinds can be needed at once.
  Bytes most = 0;
  for (const Op& op : graph.ops) {
    const ValueId in = std::holds_alternative<MatMulOp>(op) ? std::get<MatMulOp>(op).in
                       : std::holds_alternative<ExpertMatMulOp>(op)
                           ? std::get<ExpertMatMulOp>(op).in
                           : ValueId{};
    if (!in.valid()) continue;
    const Value& value = graph.value(in);
    const auto rows = static_cast<Bytes>(domain_rows(graph, value.domain, limits));
    const Bytes row = round_up<Bytes>(static_cast<Bytes>(value.width), 256) * 40 / 32;
    most = std::max(most, 2 * rows * round_up<Bytes>(row, kAlignment));
  }
  return most;
}

}  // namespace strata
