// The matrix product of every format, over a vocabulary V. A lane is a weight row; blocks are added
// in ascending order, segments of 4096 columns folded left, whatever else shares the step. Few rows
// of activations read the weights in place; many share panels of unpacked weights.
#pragma once

#include "device/cpu/kernels/many_rows.h"

namespace strata {

template <class V, class F>
class MatMul {
 public:
  explicit MatMul(const MatMulTask& task) : t_(task), blocks_(task.columns / F::kElements) {}

  void run() {
    if constexpr (V::kPanels && !kFloats<F>)
      if (t_.count > kFewRows) return ManyRows<V, F, RegisterTiles<V, F>>(t_).run();
    few_rows();
  }

  // Whatever the number of rows.
  void few_rows() {
    constexpr int kCells = kFloats<F> ? V::kTileCells : 1;
    std::int64_t row = t_.first_row;
    for (; row + (kCells - 1) * V::kWidth < t_.last_row; row += kCells * V::kWidth)
      few_rows_of<kCells>(row);
    for (; row < t_.last_row; row += V::kWidth) few_rows_of<1>(row);
  }

 private:
  using A = typename F::Activation;
  using S = decltype(panel_shape_of<V, F>());
  // Blocks of smaller parts take long to read, so that a panel pays sooner.
  static constexpr int kFewRows = kReadInPlace<F> && S::kPart == 32 ? V::kFewRows : 4;
  static constexpr std::int64_t kSegmentBlocks = kSegmentColumns / F::kElements;
  // Blocks of activations that a block of weights covers.
  static constexpr std::int64_t kActivationBlocks = F::kElements / activation_elements<A>();

  const A* activations(std::int64_t row) const {
    return static_cast<const A*>(t_.activations[row]);
  }

  template <int G>
  void few_rows_of(std::int64_t row) {
    for_tiles<kFloats<F> ? V::kTileRows : kFewRows>(
        t_.count, [&](auto rows, std::int64_t first) { cells_times_rows<G, rows>(row, first); });
  }

  template <int G, int R>
  [[gnu::noinline]] void cells_times_rows(std::int64_t row, std::int64_t first) {
    Cell<V, F> cells[G];
    for (int g = 0; g < G; ++g) cells[g].start(t_, row + g * V::kWidth);
    const A* a[R];
    for (int r = 0; r < R; ++r) a[r] = activations(first + r);
    typename V::F32 total[G][R] = {};
    for (std::int64_t b = 0; b < blocks_;) {
      const std::int64_t last = b + kSegmentBlocks < blocks_ ? b + kSegmentBlocks : blocks_;
      const bool starts = b == 0;
      typename V::F32 acc[G][R];
      for (int g = 0; g < G; ++g)
        for (int r = 0; r < R; ++r) acc[g][r] = V::zero();
      for (; b < last; ++b) {
        typename V::Weights w[G];
        for (int g = 0; g < G; ++g) {
          cells[g].prefetch(b, G);
          w[g] = cells[g].block(b);
        }
        multiply_block<V, F, G, R>(w, a, acc);
        for (int r = 0; r < R; ++r) a[r] += kActivationBlocks;
      }
      for (int g = 0; g < G; ++g)
        for (int r = 0; r < R; ++r)
          total[g][r] = starts ? acc[g][r] : V::add(total[g][r], acc[g][r]);
    }
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r)
        store_lanes<V>(t_.out[first + r] + row + g * V::kWidth, cells[g].count(), total[g][r]);
  }

  const MatMulTask& t_;
  const std::int64_t blocks_;
};

template <class V, class F>
void matmul(const MatMulTask& task) {
  if constexpr (V::kStreamRows > 0)
    if (task.count <= V::kStreamRows) return MatMul<typename V::Narrow, F>(task).few_rows();
  MatMul<V, F>(task).run();
}

}  // namespace strata
