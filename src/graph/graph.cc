#include "graph/graph.h"

#include <cmath>

namespace strata {
namespace {

// Visits operations in order and checks what a device relies on: ids in range, values defined
// before use, widths and domains that fit together.
class Validator {
 public:
  explicit Validator(const Graph& graph) : graph_(graph), defined_(graph.values.size(), false) {}

  Status run() {
    for (const Value& value : graph_.values)
      if (value.width <= 0) return internal_error("graph: a value has no width");
    for (op_ = 0; op_ < graph_.ops.size(); ++op_) {
      std::visit([this](const auto& op) { check(op); }, graph_.ops[op_]);
      if (!status_.ok()) return status_;
    }
    use(graph_.output, RowDomain::kLogits);
    return status_;
  }

 private:
  void require(bool condition, std::string_view what) {
    if (!condition && status_.ok())
      status_ = internal_error("graph of {}: operation {}: {}", graph_.architecture, op_, what);
  }
  bool in_range(ValueId id) {
    const bool ok = id.valid() && static_cast<std::size_t>(id.value) < graph_.values.size();
    require(ok, "value id out of range");
    return ok;
  }
  void use(ValueId id, RowDomain domain, std::int64_t width = -1) {
    if (!in_range(id)) return;
    require(defined_[static_cast<std::size_t>(id.value)], "a value is read before it is written");
    shape(id, domain, width);
  }
  void define(ValueId id, RowDomain domain, std::int64_t width = -1) {
    if (!in_range(id)) return;
    defined_[static_cast<std::size_t>(id.value)] = true;
    shape(id, domain, width);
  }
  void shape(ValueId id, RowDomain domain, std::int64_t width) {
    require(graph_.value(id).domain == domain, "a value has the wrong row domain");
    require(width < 0 || graph_.value(id).width == width, "a value has the wrong width");
  }
  std::int64_t width(ValueId id) { return in_range(id) ? graph_.value(id).width : -1; }
  RowDomain domain(ValueId id) {
    return in_range(id) ? graph_.value(id).domain : RowDomain::kTokens;
  }
  bool in_range(WeightId id) {
    const bool ok = id.valid() && static_cast<std::size_t>(id.value) < graph_.weights.size();
    require(ok, "weight id out of range");
    return ok;
  }
  void weight(WeightId id, WeightRole role, std::int64_t rows, std::int64_t columns,
              std::int64_t slices = -1) {
    if (!in_range(id)) return;
    const Weight& w = graph_.weight(id);
    require(w.role == role, "a weight has the wrong role");
    require(rows < 0 || w.rows == rows, "a weight has the wrong number of rows");
    require(w.columns == columns, "a weight has the wrong row length");
    require(slices < 0 || w.slices == slices, "a weight has the wrong number of slices");
  }

  void vector(WeightId id, std::int64_t elements) { weight(id, WeightRole::kVector, 1, elements); }
  void state(const StateSlot& slot, std::int64_t size) {
    const auto group = static_cast<std::size_t>(slot.cache_group);
    require(slot.cache_group >= 0 && group < graph_.cache_groups.size(),
            "cache group out of range");
    if (!status_.ok()) return;
    require(graph_.cache_groups[group].spec.state_size == size, "cache group of another shape");
    require(slot.cache_layer >= 0 && slot.cache_layer < graph_.cache_groups[group].layers,
            "cache layer out of range");
  }

  void check(const EmbedOp& op) {
    define(op.out, RowDomain::kTokens);
    weight(op.table, WeightRole::kMatrix, -1, width(op.out));
    if (!status_.ok()) return;
    const std::int64_t rows = graph_.weight(op.table).rows;
    require(rows > 0, "an embedding table has no rows");
    if (op.index == EmbedIndex::kToken)
      require(graph_.vocabulary > 0 && graph_.vocabulary <= rows, "a token has no embedding");
    if (op.index == EmbedIndex::kPosition)
      require(graph_.max_positions > 0 && graph_.max_positions <= rows,
              "a position has no embedding");
  }
  void check(const NormOp& op) {
    use(op.in, domain(op.in));
    define(op.out, domain(op.in), width(op.in));
    require(op.heads > 0 && width(op.in) % op.heads == 0, "heads do not divide the width");
    require(op.weight || !op.bias, "a norm with a bias has no weight");
    if (!status_.ok() || !op.weight) return;
    const bool own = in_range(*op.weight) && graph_.weight(*op.weight).columns == width(op.in);
    const std::int64_t columns = width(op.in) / (own ? 1 : op.heads);
    vector(*op.weight, columns);
    if (op.bias) vector(*op.bias, columns);
  }
  // The rows of `parts` slices of a weight make a row of an output.
  void projections(const std::vector<Projection>& list, std::int64_t columns, RowDomain out,
                   std::int32_t parts = 1) {
    require(!list.empty(), "no projection");
    for (const Projection& p : list) {
      define(p.out, out);
      require(width(p.out) % parts == 0, "parts do not divide an output");
      weight(p.weight, WeightRole::kMatrix, width(p.out) / parts, columns);
      if (!status_.ok()) continue;
      const std::int64_t slices = graph_.weight(p.weight).slices;
      if (p.scale) weight(*p.scale, WeightRole::kVector, 1, slices);
      if (p.bias) weight(*p.bias, WeightRole::kVector, 1, width(p.out) / parts, slices);
    }
  }
  void check(const MatMulOp& op) {
    use(op.in, domain(op.in));
    require(op.parts > 0 && width(op.in) % op.parts == 0, "parts do not divide the input");
    if (!status_.ok()) return;
    projections(op.projections, width(op.in) / op.parts, domain(op.in), op.parts);
    for (const Projection& p : op.projections)
      require(!status_.ok() || graph_.weight(p.weight).slices == op.parts,
              "slices are not the parts");
  }
  void check(const ConcatOp& op) {
    require(!op.pieces.empty() && op.parts > 0, "nothing to concatenate");
    std::int64_t part_width = 0;
    for (const ConcatPiece& p : op.pieces) {
      use(p.in, domain(op.out));
      require(p.width > 0 && p.offset >= 0 && p.stride >= 0 &&
                  std::int64_t{op.parts - 1} * p.stride + p.offset + p.width <= width(p.in),
              "a piece lies outside its value");
      part_width += p.width;
    }
    define(op.out, domain(op.out), part_width * op.parts);
  }
  void check(const RopeTableOp& op) {
    require(op.dimensions > 0 && op.dimensions % 2 == 0, "rope dimensions are not even");
    require(std::isfinite(op.base) && op.base > 0, "rope base is not positive");
    require(std::isfinite(op.scale) && op.scale > 0, "rope scale is not positive");
    require(std::isfinite(op.magnitude), "rope magnitude is not finite");
    if (op.yarn)
      require(std::isfinite(op.yarn->low) && std::isfinite(op.yarn->high) &&
                  std::isfinite(op.yarn->strength),
              "YaRN ramp is not finite");
    define(op.out, RowDomain::kTokens, op.dimensions);
    if (op.factors) weight(*op.factors, WeightRole::kVector, 1, op.dimensions / 2);
    if (op.long_factors) weight(*op.long_factors, WeightRole::kVector, 1, op.dimensions / 2);
  }
  void check(const RopeOp& op) {
    use(op.table, RowDomain::kTokens, op.dimensions);
    use(op.value, RowDomain::kTokens);
    require(op.heads > 0 && width(op.value) % op.heads == 0 &&
                op.dimensions <= width(op.value) / op.heads,
            "rope does not fit the heads");
  }
  void check(const AttentionOp& op) {
    require(op.heads > 0 && op.kv_heads > 0 && op.heads % op.kv_heads == 0,
            "heads are no multiple of key/value heads");
    require(op.causal || (!graph_.causal && op.window == 0),
            "attention to later positions needs the sequence whole, without a window");
    use(op.query, RowDomain::kTokens, std::int64_t{op.heads} * op.head_size);
    use(op.key, RowDomain::kTokens, std::int64_t{op.kv_heads} * op.head_size);
    if (op.value.valid())
      use(op.value, RowDomain::kTokens, std::int64_t{op.kv_heads} * op.value_size);
    else
      require(op.value_size <= op.head_size, "values are longer than the keys that hold them");
    if (op.sinks) weight(*op.sinks, WeightRole::kVector, 1, op.heads);
    define(op.out, RowDomain::kTokens, std::int64_t{op.heads} * op.value_size);
    const auto group = static_cast<std::size_t>(op.cache_group);
    require(op.cache_group >= 0 && group < graph_.cache_groups.size(), "cache group out of range");
    if (!status_.ok()) return;
    const CacheSpec spec{op.kv_heads, op.head_size, op.value.valid() ? op.value_size : 0, op.window,
                         0};
    require(graph_.cache_groups[group].spec == spec, "cache group of another shape");
    require(op.cache_layer >= 0 && op.cache_layer < graph_.cache_groups[group].layers,
            "cache layer out of range");
  }
  void check(const AddOp& op) {
    use(op.a, domain(op.a));
    use(op.b, domain(op.a), width(op.a));
    define(op.out, domain(op.a), width(op.a));
  }
  void check(const ScaleOp& op) {
    use(op.value, domain(op.value));
    require(std::isfinite(op.factor), "a scale is not finite");
  }
  void check(const GateOp& op) {
    use(op.gate, domain(op.up));
    use(op.up, domain(op.up));
    require(width(op.gate) == width(op.up) ||
                (width(op.gate) == 1 && op.function != GateFunction::kClampedSwiglu),
            "a gate has the wrong width");
    define(op.out, domain(op.up), width(op.up));
  }
  void check(const RouteOp& op) {
    use(op.scores, RowDomain::kTokens, op.experts);
    require(op.used > 0 && op.used <= op.experts, "more experts used than there are");
    require(op.groups > 0 && op.experts % op.groups == 0, "groups do not divide the experts");
    if (!status_.ok()) return;
    const std::int32_t members = op.experts / op.groups;
    require(op.groups_used > 0 && op.groups_used <= op.groups && op.group_best > 0 &&
                op.group_best <= members && op.used <= op.groups_used * members,
            "the groups used hold too few experts");
    require(std::isfinite(op.scale), "a routing scale is not finite");
    if (op.bias) weight(*op.bias, WeightRole::kVector, 1, op.experts);
    define(op.ids, RowDomain::kTokens, op.used);
    define(op.weights, RowDomain::kTokens, op.used);
  }
  void check(const ExpertMatMulOp& op) {
    use(op.ids, RowDomain::kTokens, op.used);
    require(op.used == graph_.experts_used, "routed rows of two kinds");
    use(op.in, domain(op.in));
    require(domain(op.in) != RowDomain::kLogits, "experts cannot read logit rows");
    projections(op.projections, width(op.in), RowDomain::kRouted);
  }
  void check(const CombineOp& op) {
    use(op.in, RowDomain::kRouted);
    use(op.weights, RowDomain::kTokens, op.used);
    define(op.out, RowDomain::kTokens, width(op.in));
  }
  void check(const SelectLogitRowsOp& op) {
    use(op.in, RowDomain::kTokens);
    define(op.out, RowDomain::kLogits, width(op.in));
  }
  void check(const SoftcapOp& op) {
    use(op.value, domain(op.value));
    require(std::isfinite(op.cap) && op.cap > 0, "softcap is not positive");
  }
  void check(const ActivateOp& op) {
    use(op.value, domain(op.value));
    if (op.bias) vector(*op.bias, width(op.value));
  }
  void check(const ShortConvOp& op) {
    use(op.in, RowDomain::kTokens);
    define(op.out, RowDomain::kTokens, width(op.in));
    require(op.in != op.out, "a convolution cannot be in place");
    require(op.kernel >= 2, "a convolution needs at least two taps");
    vector(op.weight, width(op.in) * op.kernel);
    if (op.bias) vector(*op.bias, width(op.in));
    state(op.slot, (op.kernel - std::int64_t{1}) * width(op.in));
  }
  void check(const SsmScanOp& op) {
    require(op.heads > 0 && op.head_size > 0 && op.state_size > 0, "a scan without size");
    require(op.groups > 0 && op.heads % op.groups == 0, "heads are no multiple of groups");
    const std::int64_t inner = std::int64_t{op.heads} * op.head_size;
    use(op.x, RowDomain::kTokens, inner);
    use(op.dt, RowDomain::kTokens, op.heads);
    use(op.b, RowDomain::kTokens, std::int64_t{op.groups} * op.state_size);
    use(op.c, RowDomain::kTokens, std::int64_t{op.groups} * op.state_size);
    define(op.out, RowDomain::kTokens, inner);
    if (!in_range(op.a)) return;
    const bool per_head = graph_.weight(op.a).columns == op.heads;
    vector(op.a, std::int64_t{op.heads} * (per_head ? 1 : op.state_size));
    vector(op.d, op.heads);
    state(op.slot, inner * op.state_size);
  }
  void check(const GatedDeltaOp& op) {
    require(op.key_heads > 0 && op.value_heads > 0 && op.value_heads % op.key_heads == 0,
            "value heads are no multiple of key heads");
    require(op.key_size > 0 && op.value_size > 0, "heads without size");
    use(op.query, RowDomain::kTokens, std::int64_t{op.key_heads} * op.key_size);
    use(op.key, RowDomain::kTokens, std::int64_t{op.key_heads} * op.key_size);
    use(op.value, RowDomain::kTokens, std::int64_t{op.value_heads} * op.value_size);
    use(op.dt, RowDomain::kTokens, op.value_heads);
    use(op.beta, RowDomain::kTokens, op.value_heads);
    define(op.out, RowDomain::kTokens, std::int64_t{op.value_heads} * op.value_size);
    vector(op.a, op.value_heads);
    state(op.slot, std::int64_t{op.value_heads} * op.value_size * op.key_size);
  }
  void check(const LerpOp& op) {
    use(op.a, domain(op.a));
    use(op.b, domain(op.a), width(op.a));
    use(op.share, domain(op.a), width(op.a));
    define(op.out, domain(op.a), width(op.a));
  }
  void check(const TokenShiftOp& op) {
    use(op.in, RowDomain::kTokens);
    for (const ValueId out : op.outs) {
      define(out, RowDomain::kTokens, width(op.in));
      require(out != op.in, "a token shift cannot be in place");
    }
    vector(op.weight, static_cast<std::int64_t>(op.outs.size()) * width(op.in));
    state(op.slot, width(op.in));
  }
  void check(const Rwkv7Op& op) {
    const std::int64_t inner = width(op.receptance);
    require(op.heads > 0 && inner % op.heads == 0, "heads do not divide the width");
    if (!status_.ok()) return;
    for (const ValueId in : {op.receptance, op.decay, op.key, op.value, op.rate})
      use(in, RowDomain::kTokens, inner);
    for (const ValueId out : {op.out, op.bonus}) define(out, RowDomain::kTokens, inner);
    for (const WeightId w : {op.removal, op.replacement, op.bonus_weight}) vector(w, inner);
    state(op.slot, inner * (inner / op.heads));
  }

  const Graph& graph_;
  std::vector<bool> defined_;
  std::size_t op_ = 0;
  Status status_;
};

}  // namespace

Status validate(const Graph& graph) { return Validator(graph).run(); }

}  // namespace strata
