// The matrix product of every format, over a vocabulary V. A lane is a weight row; blocks are added
// in ascending order, segments of 4096 columns folded left, whatever else shares the step.
#pragma once

#include "device/cpu/kernels.h"
#include "formats/format.h"

namespace strata {

constexpr std::int64_t kSegmentColumns = 4096;

// Writes the chunks of field kIndex and those after it of one plain block to their lane. Only
// constant expressions touch the array of fields, whose members would be exported symbols.
template <class V, class F, std::size_t kIndex = 0>
void gather_fields(const std::uint8_t* source, int lane, std::uint8_t* out) {
  if constexpr (kIndex < F::kFields.size()) {
    constexpr Field field = F::kFields[kIndex];
    for (int c = 0; c < field.bytes / field.chunk; ++c)
      for (int i = 0; i < field.chunk; ++i)
        out[(c * kLanes + lane) * field.chunk + i] = source[c * field.chunk + i];
    gather_fields<V, F, kIndex + 1>(source + field.bytes, lane, out + field.bytes * kLanes);
  }
}

// One block of up to eight plain rows in the interleaved layout; rows that are not there are zero.
template <class V, class F>
void gather_block(const std::uint8_t* rows, std::int64_t row_bytes, int count, std::int64_t block,
                  std::uint8_t* out) {
  for (int i = 0; i < F::kBytes * kLanes; ++i) out[i] = 0;
  for (int lane = 0; lane < count; ++lane)
    gather_fields<V, F>(rows + lane * row_bytes + block * F::kBytes, lane, out);
}

// One group of weight rows times R activation rows. `count` < 8: the rows are plain.
template <class V, class F, int R>
void group_times_rows(const std::uint8_t* group, std::int64_t columns, int count,
                      const void* const* activations, float* const* out) {
  using A = typename F::Activation;
  const std::int64_t blocks = columns / F::kElements;
  const std::int64_t row_bytes = blocks * F::kBytes;
  constexpr std::int64_t kSegmentBlocks = kSegmentColumns / F::kElements;
  constexpr int kActivationBlocks = F::kElements / activation_elements<A>();
  const A* a[R];
  typename V::F32 total[R];
  for (int r = 0; r < R; ++r) {
    a[r] = static_cast<const A*>(activations[r]);
    total[r] = V::zero();
  }
  alignas(32) std::uint8_t gathered[F::kBytes * kLanes];
  for (std::int64_t first = 0; first < blocks; first += kSegmentBlocks) {
    const std::int64_t last = first + kSegmentBlocks < blocks ? first + kSegmentBlocks : blocks;
    typename V::F32 acc[R];
    for (int r = 0; r < R; ++r) acc[r] = V::zero();
    for (std::int64_t b = first; b < last; ++b) {
      const std::uint8_t* block = group + b * F::kBytes * kLanes;
      if (count < kLanes) {
        gather_block<V, F>(group, row_bytes, count, b, gathered);
        block = gathered;
      }
      F::template accumulate<V, R>(block, a, acc);
      for (int r = 0; r < R; ++r) a[r] += kActivationBlocks;
    }
    for (int r = 0; r < R; ++r) total[r] = first == 0 ? acc[r] : V::add(total[r], acc[r]);
  }
  for (int r = 0; r < R; ++r) {
    float lanes[kLanes];
    V::store(lanes, total[r]);
    for (int lane = 0; lane < count; ++lane) out[r][lane] = lanes[lane];
  }
}

template <class V, class F>
void matmul(const MatMulTask& task) {
  constexpr int kTile = 4;  // activation rows that share one unpacked weight block
  const std::int64_t row_bytes = task.columns / F::kElements * F::kBytes;
  for (std::int64_t row = task.first_row; row < task.last_row; row += kLanes) {
    const std::uint8_t* group = task.weights + row * row_bytes;
    const int count = static_cast<int>(task.rows - row < kLanes ? task.rows - row : kLanes);
    for (std::int64_t r = 0; r < task.count; r += kTile) {
      const void* const* a = task.activations + r;
      float* out[kTile];
      const std::int64_t left = task.count - r;
      for (int i = 0; i < kTile; ++i) out[i] = i < left ? task.out[r + i] + row : nullptr;
      if (left >= 4)
        group_times_rows<V, F, 4>(group, task.columns, count, a, out);
      else if (left == 3)
        group_times_rows<V, F, 3>(group, task.columns, count, a, out);
      else if (left == 2)
        group_times_rows<V, F, 2>(group, task.columns, count, a, out);
      else
        group_times_rows<V, F, 1>(group, task.columns, count, a, out);
    }
  }
}

}  // namespace strata
