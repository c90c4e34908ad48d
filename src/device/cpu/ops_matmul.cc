// Matrix products: dense and by expert.
#include <cstring>

#include "device/cpu/cpu_segment.h"

namespace strata {
namespace {

// Weight rows that a worker takes at least, as many as share a panel's activations.
constexpr std::int64_t kPartRows = 128;
// For so few rows of activations memory is the limit, which one long stream per worker uses best.
constexpr std::int64_t kStreamRows = 4;

std::int64_t activation_bytes(ActivationKind kind, std::int64_t columns) {
  switch (kind) {
    case ActivationKind::kQ8x32: return columns / 32 * std::int64_t{sizeof(Q8Block32)};
    case ActivationKind::kQ8x256: return columns / 256 * std::int64_t{sizeof(Q8Block256)};
    case ActivationKind::kF32: break;
  }
  return 0;
}

std::int64_t activation_row_bytes(ActivationKind kind, std::int64_t columns) {
  return round_up<std::int64_t>(activation_bytes(kind, columns), 64);
}

}  // namespace

ActivationKind OpRunner::kind_for(FormatId format) const {
  return s_.reference ? ActivationKind::kF32 : find_format(format)->activation;
}

const void* OpRunner::activation_row(const Rows& in, ActivationKind kind, std::int64_t row,
                                     std::int64_t first_column) const {
  if (kind == ActivationKind::kF32) return in.row(row) + first_column;
  const Bytes half = kind == ActivationKind::kQ8x32 ? 0 : s_.activations.bytes() / 2;
  return s_.activations.data() + half + row * activation_row_bytes(kind, in.width) +
         activation_bytes(kind, first_column);
}

void OpRunner::prepare_activations(const Rows& in, const std::vector<Projection>& projections) {
  bool q8x32 = false, q8x256 = false;
  for (const Projection& p : projections) {
    const ActivationKind kind = kind_for(weight(p.weight).format);
    q8x32 |= kind == ActivationKind::kQ8x32;
    q8x256 |= kind == ActivationKind::kQ8x256;
  }
  if (!q8x32 && !q8x256) return;
  const auto target = [&](ActivationKind kind, std::int64_t row) {
    return const_cast<void*>(activation_row(in, kind, row));
  };
  each_row(in.count, [&](std::int64_t i) {
    if (q8x32) s_.kernels->quantize_q8x32(in.row(i), in.width, target(ActivationKind::kQ8x32, i));
    if (q8x256)
      s_.kernels->quantize_q8x256(in.row(i), in.width, target(ActivationKind::kQ8x256, i));
  });
  w_.barrier();
}

void OpRunner::multiply(const WeightView& view, const Projection& projection, std::int64_t slice,
                        std::int64_t count) {
  for (const RowPiece& piece : view.slice(slice)) {
    const auto part = [&](Worker::Range range) {
      if (range.first == range.last) return;
      if (s_.reference)
        multiply_reference(view, piece, range, count);
      else
        multiply_piece(view, piece, range, count);
      finish(projection, slice, view.rows,
             {piece.first_row + range.first, piece.first_row + range.last}, count);
    };
    if (count <= kStreamRows)
      part(w_.share(piece.rows, kLanes));
    else
      w_.each_part(piece.rows, kPartRows, part);
  }
}

void OpRunner::multiply_piece(const WeightView& view, const RowPiece& piece, Worker::Range range,
                              std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i)
    scratch_.outs[static_cast<std::size_t>(i)] += piece.first_row;
  s_.kernels->matmul[static_cast<std::size_t>(view.format)](
      {piece.data, view.columns, piece.rows, range.first, range.last, scratch_.activations.data(),
       scratch_.outs.data(), count});
  for (std::int64_t i = 0; i < count; ++i)
    scratch_.outs[static_cast<std::size_t>(i)] -= piece.first_row;
}

// Decodes eight rows at a time and multiplies them as f32.
void OpRunner::multiply_reference(const WeightView& view, const RowPiece& piece,
                                  Worker::Range range, std::int64_t count) {
  const FormatOps& format = *find_format(view.format);
  const FormatOps& f32 = *find_format(FormatId::F32);
  const std::int64_t columns = view.columns;
  float* plain = scratch_.floats.data();
  auto* group = reinterpret_cast<std::uint8_t*>(plain + columns * kLanes);
  for (std::int64_t row = range.first; row < range.last; row += kLanes) {
    const std::int64_t lanes = std::min<std::int64_t>(kLanes, piece.rows - row);
    for (std::int64_t lane = 0; lane < lanes; ++lane)
      decode_interleaved_row(format, piece.data, piece.rows, row + lane, columns,
                             plain + lane * columns);
    repack_rows(f32, reinterpret_cast<const std::uint8_t*>(plain), lanes, columns * 4, group);
    for (std::int64_t i = 0; i < count; ++i)
      scratch_.outs[static_cast<std::size_t>(i)] += piece.first_row + row;
    s_.kernels->matmul[static_cast<std::size_t>(FormatId::F32)]({group, columns, lanes, 0, lanes,
                                                                 scratch_.activations.data(),
                                                                 scratch_.outs.data(), count});
    for (std::int64_t i = 0; i < count; ++i)
      scratch_.outs[static_cast<std::size_t>(i)] -= piece.first_row + row;
  }
}

void OpRunner::finish(const Projection& projection, std::int64_t slice, std::int64_t slice_rows,
                      Worker::Range range, std::int64_t count) {
  if (!projection.scale && !projection.bias) return;
  const float scale = projection.scale ? vector(*projection.scale)[slice] : 1.0f;
  const float* bias = projection.bias ? vector(*projection.bias) + slice * slice_rows : nullptr;
  for (std::int64_t i = 0; i < count; ++i) {
    float* out = scratch_.outs[static_cast<std::size_t>(i)];
    for (std::int64_t row = range.first; row < range.last; ++row) {
      out[row] *= scale;
      if (bias != nullptr) out[row] += bias[row];
    }
  }
}

void OpRunner::apply(const MatMulOp& op) {
  const Rows in = rows(op.in);
  if (in.count == 0) return;
  prepare_activations(in, op.projections);
  for (const Projection& projection : op.projections) {
    const WeightView& view = weight(projection.weight);
    const Rows out = rows(projection.out);
    const ActivationKind kind = kind_for(view.format);
    for (std::int64_t part = 0; part < op.parts; ++part) {
      for (std::int64_t i = 0; i < in.count; ++i) {
        const auto at = static_cast<std::size_t>(i);
        scratch_.activations[at] = activation_row(in, kind, i, part * view.columns);
        scratch_.outs[at] = out.row(i) + part * view.rows;
      }
      multiply(view, projection, part, in.count);
    }
  }
}

// Counting sort of the routed rows by their expert; within an expert they stay in order.
void OpRunner::order_by_expert(const Rows& ids, std::int64_t experts) {
  auto& ends = scratch_.expert_ends;
  ends.assign(static_cast<std::size_t>(experts) + 1, 0);
  const auto expert = [&](std::int64_t routed) {
    std::int32_t id;
    std::memcpy(&id, ids.row(routed / ids.width) + routed % ids.width, sizeof id);
    return static_cast<std::size_t>(id);
  };
  const std::int64_t total = ids.count * ids.width;
  for (std::int64_t i = 0; i < total; ++i) ++ends[expert(i) + 1];
  for (std::size_t e = 1; e < ends.size(); ++e) ends[e] += ends[e - 1];
  for (std::int64_t i = 0; i < total; ++i)
    scratch_.expert_rows[static_cast<std::size_t>(ends[expert(i)]++)] =
        static_cast<std::int32_t>(i);
}

void OpRunner::apply(const ExpertMatMulOp& op) {
  const Rows in = rows(op.in);
  const Rows ids = rows(op.ids);
  if (in.count == 0) return;
  prepare_activations(in, op.projections);
  const bool routed_input = s_.spec.graph->value(op.in).domain == RowDomain::kRouted;
  const std::int64_t experts = s_.spec.graph->weight(op.projections.front().weight).slices;
  order_by_expert(ids, experts);
  for (const Projection& projection : op.projections) {
    const WeightView& view = weight(projection.weight);
    const Rows out = rows(projection.out);
    const ActivationKind kind = kind_for(view.format);
    std::int32_t first = 0;
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      const std::int32_t last = scratch_.expert_ends[static_cast<std::size_t>(expert)];
      for (std::int32_t i = first; i < last; ++i) {
        const std::int32_t routed = scratch_.expert_rows[static_cast<std::size_t>(i)];
        const auto at = static_cast<std::size_t>(i - first);
        scratch_.activations[at] =
            activation_row(in, kind, routed_input ? routed : routed / op.used);
        scratch_.outs[at] = out.row(routed);
      }
      if (last > first) multiply(view, projection, expert, last - first);
      first = last;
    }
  }
}

}  // namespace strata
