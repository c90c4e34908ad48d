#include "graph/op_access.h"

namespace strata {
namespace {

std::vector<ValueId> outputs(const std::vector<Projection>& projections) {
  std::vector<ValueId> outs;
  for (const Projection& p : projections) outs.push_back(p.out);
  return outs;
}

std::vector<ValueId> inputs(const std::vector<ConcatPiece>& pieces) {
  std::vector<ValueId> ins;
  for (const ConcatPiece& p : pieces) ins.push_back(p.in);
  return ins;
}

struct Access {
  OpAccess operator()(const EmbedOp& op) const { return {{}, {op.out}}; }
  OpAccess operator()(const NormOp& op) const { return {{op.in}, {op.out}}; }
  OpAccess operator()(const MatMulOp& op) const { return {{op.in}, outputs(op.projections)}; }
  OpAccess operator()(const ConcatOp& op) const { return {inputs(op.pieces), {op.out}}; }
  OpAccess operator()(const RopeTableOp& op) const { return {{}, {op.out}}; }
  OpAccess operator()(const RopeOp& op) const { return {{op.table, op.value}, {op.value}}; }
  OpAccess operator()(const AttentionOp& op) const {
    if (!op.value.valid()) return {{op.query, op.key}, {op.out}};
    return {{op.query, op.key, op.value}, {op.out}};
  }
  OpAccess operator()(const AddOp& op) const { return {{op.a, op.b}, {op.out}}; }
  OpAccess operator()(const ScaleOp& op) const { return {{op.value}, {op.value}}; }
  OpAccess operator()(const GateOp& op) const { return {{op.gate, op.up}, {op.out}}; }
  OpAccess operator()(const RouteOp& op) const { return {{op.scores}, {op.ids, op.weights}}; }
  OpAccess operator()(const ExpertMatMulOp& op) const {
    return {{op.in, op.ids}, outputs(op.projections)};
  }
  OpAccess operator()(const CombineOp& op) const { return {{op.in, op.weights}, {op.out}}; }
  OpAccess operator()(const SelectLogitRowsOp& op) const { return {{op.in}, {op.out}}; }
  OpAccess operator()(const SoftcapOp& op) const { return {{op.value}, {op.value}}; }
  OpAccess operator()(const ActivateOp& op) const { return {{op.value}, {op.value}}; }
  OpAccess operator()(const ShortConvOp& op) const { return {{op.in}, {op.out}}; }
  OpAccess operator()(const SsmScanOp& op) const { return {{op.x, op.dt, op.b, op.c}, {op.out}}; }
  OpAccess operator()(const GatedDeltaOp& op) const {
    return {{op.query, op.key, op.value, op.dt, op.beta}, {op.out}};
  }
  OpAccess operator()(const LerpOp& op) const { return {{op.a, op.b, op.share}, {op.out}}; }
  OpAccess operator()(const TokenShiftOp& op) const { return {{op.in}, op.outs}; }
  OpAccess operator()(const Rwkv7Op& op) const {
    return {{op.receptance, op.decay, op.key, op.value, op.rate}, {op.out, op.bonus}};
  }
};

}  // namespace

OpAccess op_access(const Op& op) { return std::visit(Access{}, op); }

}  // namespace strata
