// The matrix product of every format, over a vocabulary V. A lane is a weight row; blocks are added
// in ascending order, segments of 4096 columns folded left, whatever else shares the step. Few rows
// of activations read the weights in place; many share panels of unpacked weights.
#pragma once

#include "device/cpu/kernels/products.h"

namespace strata {

constexpr std::int64_t kSegmentColumns = 4096;

// f(n) with n as a constant, which is at most kMost.
template <int kMost, class F>
void with_constant(std::int64_t n, const F& f) {
  if constexpr (kMost > 0) {
    if (n == kMost)
      f(Constant<kMost>());
    else
      with_constant<kMost - 1>(n, f);
  }
}

// f(n, first) for tiles of at most kMost rows, as even as they can be.
template <int kMost, class F>
void for_tiles(std::int64_t rows, const F& f) {
  for (std::int64_t first = 0, tiles = (rows + kMost - 1) / kMost; first < rows; --tiles) {
    const std::int64_t count = (rows - first + tiles - 1) / tiles;
    with_constant<kMost>(count, [&](auto n) { f(n, first); });
    first += count;
  }
}

template <class V, class F>
class MatMul {
 public:
  explicit MatMul(const MatMulTask& task) : t_(task), blocks_(task.columns / F::kElements) {}

  void run() {
    if constexpr (V::kPanels && !kFloats<F>)
      if (t_.count > kFewRows) return many_rows();
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
    for_tiles<kFloats<F> ? V::kTileRows : 4>(
        t_.count, [&](auto rows, std::int64_t first) { cells_times_rows<G, rows>(row, first); });
  }

  template <int G, int R>
  void cells_times_rows(std::int64_t row, std::int64_t first) {
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
        store(first + r, row + g * V::kWidth, cells[g].count(), total[g][r]);
  }

  // So many cells share a row's activations in the cache, so many rows a cell's panels.
  static constexpr int kPanelCells = 64 / V::kWidth;
  static constexpr int kPanelRows = 128;
  static constexpr std::int64_t kPanelBlocks =
      F::kElements < kPanelElements ? kPanelElements / F::kElements : 1;

  struct Workspace {
    Panel<V> panels[kPanelCells];
    alignas(64) float acc[kPanelRows][kPanelCells][V::kWidth];
  };

  void many_rows() {
    Workspace space;
    for (std::int64_t row = t_.first_row; row < t_.last_row; row += kPanelCells * V::kWidth)
      for (std::int64_t first = 0; first < t_.count; first += kPanelRows) {
        const std::int64_t left = t_.count - first;
        panel_rows(space, row, first, left < kPanelRows ? left : kPanelRows);
      }
  }

  void panel_rows(Workspace& space, std::int64_t row, std::int64_t first, std::int64_t rows) {
    const std::int64_t left = (t_.last_row - row + V::kWidth - 1) / V::kWidth;
    const int cells = static_cast<int>(left < kPanelCells ? left : kPanelCells);
    for (std::int64_t b = 0; b < blocks_;) {
      const std::int64_t segment = b / kSegmentBlocks * kSegmentBlocks;
      const std::int64_t end =
          segment + kSegmentBlocks < blocks_ ? segment + kSegmentBlocks : blocks_;
      const std::int64_t count = end - b < kPanelBlocks ? end - b : kPanelBlocks;
      fill_panels(space, row, cells, b, static_cast<int>(count));
      multiply_panels(space, cells, first, rows, b, static_cast<int>(count), b == segment);
      b += count;
      if (b == end) finish_segment(space, row, cells, first, rows, segment == 0);
    }
  }

  void fill_panels(Workspace& space, std::int64_t row, int cells, std::int64_t block, int count) {
    for (int c = 0; c < cells; ++c) {
      Cell<V, F> cell;
      cell.start(t_, row + c * V::kWidth);
      cell.prefetch_panel(block + count, count, kPanelCells * V::kWidth);
      for (int i = 0; i < count; ++i) unpack<V, F>(cell.block(block + i), i, space.panels[c]);
    }
  }

  void multiply_panels(Workspace& space, int cells, std::int64_t first, std::int64_t rows,
                       std::int64_t block, int count, bool starts) {
    const int parts = count * (F::kElements / S::kPart);
    for_tiles<V::kTileRows>(rows, [&](auto tile, std::int64_t r) {
      tile_row<tile>(space, cells, first, r, block, parts, starts);
    });
  }

  template <int R>
  void tile_row(Workspace& space, int cells, std::int64_t first, std::int64_t r, std::int64_t block,
                int parts, bool starts) {
    const A* a[R];
    for (int i = 0; i < R; ++i) a[i] = activations(first + r + i) + block * kActivationBlocks;
    int c = 0;
    for (; c + V::kTileCells <= cells; c += V::kTileCells)
      tile<V::kTileCells, R>(space, c, r, a, parts, starts);
    for (; c < cells; ++c) tile<1, R>(space, c, r, a, parts, starts);
  }

  template <int G, int R>
  static void tile(Workspace& space, int cell, std::int64_t row, const A* const* a, int parts,
                   bool starts) {
    FromPanel<V> sources[G];
    for (int g = 0; g < G; ++g) sources[g] = {&space.panels[cell + g]};
    typename V::F32 acc[G][R];
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r)
        acc[g][r] = starts ? V::zero() : V::load(space.acc[row + r][cell + g]);
    add_products<V, S, G, R>(sources, parts, a, acc);
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r) V::store(space.acc[row + r][cell + g], acc[g][r]);
  }

  // Earlier segments' sums lie in the output already.
  void finish_segment(const Workspace& space, std::int64_t row, int cells, std::int64_t first,
                      std::int64_t rows, bool starts) const {
    for (std::int64_t r = 0; r < rows; ++r)
      for (int c = 0; c < cells; ++c) {
        const std::int64_t at = row + c * V::kWidth;
        const int count =
            static_cast<int>(t_.last_row - at < V::kWidth ? t_.last_row - at : V::kWidth);
        auto sum = V::load(space.acc[r][c]);
        if (!starts) sum = V::add(part(first + r, at, count), sum);
        store(first + r, at, count, sum);
      }
  }

  typename V::F32 part(std::int64_t r, std::int64_t row, int count) const {
    const float* out = t_.out[r] + row;
    if (count == V::kWidth) return V::load(out);
    float lanes[V::kWidth] = {};
    for (int lane = 0; lane < count; ++lane) lanes[lane] = out[lane];
    return V::load(lanes);
  }

  void store(std::int64_t r, std::int64_t row, int count, typename V::F32 sum) const {
    float* out = t_.out[r] + row;
    if (count == V::kWidth) return V::store(out, sum);
    float lanes[V::kWidth];
    V::store(lanes, sum);
    for (int lane = 0; lane < count; ++lane) out[lane] = lanes[lane];
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
