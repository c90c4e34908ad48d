// The matrix product with many rows of activations: blocks of 64 weight rows are unpacked once, a
// panel's depth at a time, and multiplied from there.
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

// Products of panels in tiles that fit the vector registers.
template <class V, class F>
class RegisterTiles {
 public:
  using A = typename F::Activation;
  using Cells = Panel<V>;
  // So many cells share a row's activations in the cache, so many rows a cell's panels.
  static constexpr int kCells = 64 / V::kWidth;
  static constexpr int kRows = 128;
  using Sums = float[kRows][kCells][V::kWidth];

  explicit RegisterTiles(std::int64_t /*rows*/) {}

  std::int64_t rows_at_once() const { return kRows; }
  void fill(typename V::Weights w, int index, Panel<V>& panel) const {
    unpack<V, F>(w, index, panel);
  }

  // sums[r] = (starts ? 0 : sums[r]) + the panels' products with blocks `block` of rows[r].
  void multiply(const Panel<V>* panels, int cells, const void* const* rows, std::int64_t count,
                std::int64_t block, int parts, bool starts, Sums& sums) const {
    for_tiles<kTileRows>(count, [&](auto tile, std::int64_t r) {
      tile_row<tile>(panels, cells, rows + r, block, parts, starts, &sums[r]);
    });
  }

 private:
  using S = decltype(panel_shape_of<V, F>());
  using Row = float[kCells][V::kWidth];
  // Codes with a sign are made ready for each tile, so that more rows pay more than more cells.
  static constexpr bool kTall = S::kSigned && !V::kRaised && V::kTileCells == 2;
  static constexpr int kTileRows = kTall ? 2 * V::kTileRows : V::kTileRows;
  static constexpr int kTileCells = kTall ? 1 : V::kTileCells;

  template <int R>
  static void tile_row(const Panel<V>* panels, int cells, const void* const* rows,
                       std::int64_t block, int parts, bool starts, Row* sums) {
    const A* a[R];
    for (int i = 0; i < R; ++i) a[i] = static_cast<const A*>(rows[i]) + block;
    int c = 0;
    for (; c + kTileCells <= cells; c += kTileCells)
      tile<kTileCells, R>(panels, c, a, parts, starts, sums);
    for (; c < cells; ++c) tile<1, R>(panels, c, a, parts, starts, sums);
  }

  template <int G, int R>
  [[gnu::noinline]] static void tile(const Panel<V>* panels, int cell, const A* const* a, int parts,
                                     bool starts, Row* sums) {
    FromPanel<V> sources[G];
    for (int g = 0; g < G; ++g) sources[g] = {&panels[cell + g]};
    typename V::F32 acc[G][R];
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r) acc[g][r] = starts ? V::zero() : V::load(sums[r][cell + g]);
    add_products<V, S, G, R>(sources, parts, a, acc);
    for (int g = 0; g < G; ++g)
      for (int r = 0; r < R; ++r) V::store(sums[r][cell + g], acc[g][r]);
  }
};

template <class V, class F, class Tiles>
class ManyRows {
 public:
  explicit ManyRows(const MatMulTask& task)
      : t_(task), blocks_(task.columns / F::kElements), tiles_(task.count) {}

  void run() {
    for (std::int64_t row = t_.first_row; row < t_.last_row; row += kCells * V::kWidth)
      for (std::int64_t first = 0; first < t_.count; first += tiles_.rows_at_once()) {
        const std::int64_t left = t_.count - first;
        rows_times_cells(row, first, left < tiles_.rows_at_once() ? left : tiles_.rows_at_once());
      }
  }

 private:
  using A = typename F::Activation;
  static constexpr int kCells = Tiles::kCells;
  static constexpr std::int64_t kSegmentBlocks = kSegmentColumns / F::kElements;
  static constexpr std::int64_t kPanelBlocks =
      F::kElements < kPanelElements ? kPanelElements / F::kElements : 1;
  // Blocks of activations that a block of weights covers.
  static constexpr std::int64_t kActivationBlocks = F::kElements / activation_elements<A>();
  static constexpr int kParts = F::kElements / decltype(panel_shape_of<V, F>())::kPart;

  void rows_times_cells(std::int64_t row, std::int64_t first, std::int64_t rows) {
    const std::int64_t left = (t_.last_row - row + V::kWidth - 1) / V::kWidth;
    const int cells = static_cast<int>(left < kCells ? left : kCells);
    for (std::int64_t b = 0; b < blocks_;) {
      const std::int64_t segment = b / kSegmentBlocks * kSegmentBlocks;
      const std::int64_t end =
          segment + kSegmentBlocks < blocks_ ? segment + kSegmentBlocks : blocks_;
      const std::int64_t count = end - b < kPanelBlocks ? end - b : kPanelBlocks;
      fill_panels(row, cells, b, static_cast<int>(count));
      tiles_.multiply(panels_, cells, t_.activations + first, rows, b * kActivationBlocks,
                      static_cast<int>(count) * kParts, b == segment, sums_);
      b += count;
      if (b == end) finish_segment(row, cells, first, rows, segment == 0);
    }
  }

  void fill_panels(std::int64_t row, int cells, std::int64_t block, int count) {
    for (int c = 0; c < cells; ++c) {
      Cell<V, F> cell;
      cell.start(t_, row + c * V::kWidth);
      cell.prefetch_panel(block + count, count, kCells * V::kWidth);
      for (int i = 0; i < count; ++i) tiles_.fill(cell.block(block + i), i, panels_[c]);
    }
  }

  // Earlier segments' sums lie in the output already.
  void finish_segment(std::int64_t row, int cells, std::int64_t first, std::int64_t rows,
                      bool starts) const {
    for (std::int64_t r = 0; r < rows; ++r)
      for (int c = 0; c < cells; ++c) {
        const std::int64_t at = row + c * V::kWidth;
        const int count =
            static_cast<int>(t_.last_row - at < V::kWidth ? t_.last_row - at : V::kWidth);
        float* out = t_.out[first + r] + at;
        auto sum = V::load(sums_[r][c]);
        if (!starts) sum = V::add(load_lanes<V>(out, count), sum);
        store_lanes<V>(out, count, sum);
      }
  }

  const MatMulTask& t_;
  const std::int64_t blocks_;
  Tiles tiles_;
  typename Tiles::Cells panels_[kCells];
  alignas(64) typename Tiles::Sums sums_;
};

}  // namespace strata
