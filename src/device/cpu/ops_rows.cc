// Operations on whole rows.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/math.h"
#include "device/cpu/cpu_segment.h"

namespace strata {
namespace {

decltype(KernelTable::gate_silu) gate_kernel(const KernelTable& kernels, GateFunction function) {
  switch (function) {
    case GateFunction::kSilu: return kernels.gate_silu;
    case GateFunction::kGeluTanh: return kernels.gate_gelu_tanh;
    case GateFunction::kSigmoid: return kernels.gate_sigmoid;
    case GateFunction::kClampedSwiglu: return kernels.gate_clamped_swiglu;
    case GateFunction::kIdentity: break;
  }
  return kernels.multiply;
}

ActivateKernel unary_kernel(const KernelTable& kernels, UnaryFunction function) {
  switch (function) {
    case UnaryFunction::kSilu: return kernels.silu;
    case UnaryFunction::kSigmoid: return kernels.sigmoid;
    case UnaryFunction::kTanh: return kernels.tanh;
    case UnaryFunction::kReluSquared: return kernels.relu_squared;
    case UnaryFunction::kSoftplus: return kernels.softplus;
    case UnaryFunction::kGelu: break;
  }
  return kernels.gelu;
}

}  // namespace

void OpRunner::run(std::size_t op_index) {
  op_index_ = op_index;
  std::visit([this](const auto& op) { apply(op); }, s_.spec.graph->ops[op_index]);
}

OpRunner::Rows OpRunner::rows(ValueId id) const {
  const auto index = static_cast<std::size_t>(id.value);
  const Value& value = s_.spec.graph->values[index];
  return {reinterpret_cast<float*>(s_.arena.data() + s_.layout.offsets[index]),
          s_.layout.strides[index],
          domain_rows(*s_.spec.graph, value.domain, {s_.rows, s_.logit_rows}), value.width};
}

const WeightView& OpRunner::weight(WeightId id) const {
  return s_.spec.weights[static_cast<std::size_t>(id.value)];
}

const float* OpRunner::vector(WeightId id) const {
  return reinterpret_cast<const float*>(weight(id).pieces.front().data);
}

void OpRunner::apply(const EmbedOp& op) {
  const Rows out = rows(op.out);
  const WeightView& table = weight(op.table);
  const FormatOps& format = *find_format(table.format);
  each_row(out.count, [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const std::int64_t index = op.index == EmbedIndex::kToken      ? in_.tokens[at]
                               : op.index == EmbedIndex::kPosition ? s_.positions[at]
                                                                   : 0;
    const auto pieces = table.slice(0);
    const auto piece = std::ranges::find_if(
        pieces, [&](const RowPiece& p) { return index < p.first_row + p.rows; });
    float* row = out.row(i);
    decode_interleaved_row(format, piece->data, piece->rows, index - piece->first_row,
                           table.columns, row);
    if (op.scale != 1.0f)
      for (std::int32_t d = 0; d < out.width; ++d) row[d] *= op.scale;
  });
}

void OpRunner::apply(const NormOp& op) {
  const Rows in = rows(op.in);
  const Rows out = rows(op.out);
  const float* weights = op.weight ? vector(*op.weight) : nullptr;
  const float* bias = op.bias ? vector(*op.bias) : nullptr;
  const std::int32_t part = in.width / op.heads;
  const std::int32_t step = op.weight && weight(*op.weight).columns == in.width ? part : 0;
  each_row(in.count, [&](std::int64_t i) {
    for (std::int32_t h = 0; h < op.heads; ++h) {
      const float* x = in.row(i) + h * part;
      float* normed = out.row(i) + h * part;
      if (bias != nullptr)
        s_.kernels->layer_norm(x, weights + h * step, bias + h * step, op.epsilon, part, normed);
      else
        s_.kernels->rms_norm(x, weights + h * step, op.epsilon, part, normed);
    }
  });
}

void OpRunner::apply(const AddOp& op) {
  const Rows a = rows(op.a);
  const Rows b = rows(op.b);
  const Rows out = rows(op.out);
  each_row(a.count, [&](std::int64_t i) {
    const float* x = a.row(i);
    const float* y = b.row(i);
    float* sum = out.row(i);
    for (std::int32_t d = 0; d < a.width; ++d) sum[d] = x[d] + y[d];
  });
}

void OpRunner::apply(const ScaleOp& op) {
  const Rows value = rows(op.value);
  each_row(value.count, [&](std::int64_t i) {
    float* x = value.row(i);
    for (std::int32_t d = 0; d < value.width; ++d) x[d] *= op.factor;
  });
}

void OpRunner::apply(const ConcatOp& op) {
  const Rows out = rows(op.out);
  each_row(out.count, [&](std::int64_t i) {
    float* target = out.row(i);
    for (std::int64_t part = 0; part < op.parts; ++part) {
      for (const ConcatPiece& piece : op.pieces) {
        const float* source = rows(piece.in).row(i) + part * piece.stride + piece.offset;
        target = std::copy(source, source + piece.width, target);
      }
    }
  });
}

void OpRunner::apply(const GateOp& op) {
  const Rows gate = rows(op.gate);
  const Rows up = rows(op.up);
  const Rows out = rows(op.out);
  const auto kernel = gate_kernel(*s_.kernels, op.function);
  each_row(up.count, [&](std::int64_t i) {
    if (gate.width == up.width) return kernel(gate.row(i), up.row(i), up.width, out.row(i));
    const float one = 1.0f;
    float factor;
    kernel(gate.row(i), &one, 1, &factor);
    for (std::int32_t d = 0; d < up.width; ++d) out.row(i)[d] = factor * up.row(i)[d];
  });
}

void OpRunner::apply(const CombineOp& op) {
  const Rows in = rows(op.in);
  const Rows weights = rows(op.weights);
  const Rows out = rows(op.out);
  each_row(out.count, [&](std::int64_t i) {
    float* sum = out.row(i);
    std::fill(sum, sum + out.width, 0.0f);
    for (std::int32_t rank = 0; rank < op.used; ++rank)
      s_.kernels->scaled_add(weights.row(i)[rank], in.row(i * op.used + rank), out.width, sum);
  });
}

void OpRunner::apply(const SelectLogitRowsOp& op) {
  const Rows in = rows(op.in);
  const Rows out = rows(op.out);
  each_row(out.count, [&](std::int64_t i) {
    const float* source = in.row(in_.logit_rows[static_cast<std::size_t>(i)]);
    std::copy(source, source + in.width, out.row(i));
  });
}

void OpRunner::apply(const SoftcapOp& op) {
  const Rows value = rows(op.value);
  each_row(value.count,
           [&](std::int64_t i) { s_.kernels->softcap(value.row(i), op.cap, value.width); });
}

void OpRunner::apply(const ActivateOp& op) {
  const Rows value = rows(op.value);
  const float* bias = op.bias ? vector(*op.bias) : nullptr;
  const ActivateKernel kernel = unary_kernel(*s_.kernels, op.function);
  each_row(value.count, [&](std::int64_t i) { kernel(value.row(i), bias, value.width); });
}

void OpRunner::apply(const LerpOp& op) {
  const Rows a = rows(op.a), b = rows(op.b), share = rows(op.share), out = rows(op.out);
  each_row(out.count, [&](std::int64_t i) {
    const float *x = a.row(i), *y = b.row(i), *t = share.row(i);
    float* mixed = out.row(i);
    for (std::int32_t d = 0; d < out.width; ++d) mixed[d] = x[d] + (y[d] - x[d]) * t[d];
  });
}

}  // namespace strata
