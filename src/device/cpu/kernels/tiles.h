// The matrix product with many rows of activations, where the processor multiplies tiles: up to
// sixteen of these rows times a cell, for formats whose parts have integer scales.
//
// A product of tiles knows no scales. So a panel holds each code times its scale, as two digits of
// a byte: the sums over a block's digits are exact, and their total is low + (high << shift).
#pragma once

#include "device/cpu/kernels/many_rows.h"

namespace strata {

// A panel whose codes are the low digits.
template <class V>
struct DigitPanel : Panel<V> {
  std::uint8_t high[kPanelElements / 4][4 * V::kWidth];
};

template <class V, class F>
class MatrixTiles {
 public:
  using Cells = DigitPanel<V>;
  static constexpr int kCells = 128 / V::kWidth;
  static constexpr int kRows = 256;
  using Sums = float[kRows][kCells][V::kWidth];

  explicit MatrixTiles(std::int64_t rows) : tile_rows_(tile_rows_for(rows)), tiles_(tile_rows_) {}

  std::int64_t rows_at_once() const { return kRows / tile_rows_ * tile_rows_; }

  void fill(typename V::Weights w, int index, DigitPanel<V>& panel) const {
    unpack<V, F>(w, index, panel);
    for (int part = 0; part < kPanelElements / S::kPart; ++part) make_digits(part, panel);
  }

  // sums[r] = (starts ? 0 : sums[r]) + the panels' products with block `block` of rows[r]. While a
  // tile is multiplied, the products of the one before are folded.
  void multiply(const DigitPanel<V>* panels, int cells, const void* const* rows, std::int64_t count,
                std::int64_t block, int /*parts*/, bool starts, Sums& sums) {
    pack(rows, static_cast<int>(count), block);
    Job done{};
    for (int cell = 0; cell < cells; ++cell)
      for (int first = 0; first < count; first += tile_rows_) {
        const int left = static_cast<int>(count) - first;
        const Job job = {
            &panels[cell], cell,
            first,         left < tile_rows_ ? left : tile_rows_,
            starts,        done.products == products_[0] ? products_[1] : products_[0]};
        for (int step = 0; step < kSteps; ++step) {
          multiply_step(job, step);
          fold_step(done, step, sums);
        }
        done = job;
      }
    for (int step = 0; step < kSteps; ++step) fold_step(done, step, sums);
  }

 private:
  using A = typename F::Activation;
  using S = decltype(panel_shape_of<V, F>());
  static_assert(activation_kind<A>() == ActivationKind::kQ8x256);
  // Scales without a sign have six bits. Times codes of two bits they fit one digit; else each
  // three of their bits make a digit. Other scales have eight bits, as codes with a sign.
  static_assert(S::kSigned || (S::kOffset == Offset::kOwnFactor && S::kTopCode * 7 <= 255));
  static constexpr int kDigits = S::kSigned || S::kTopCode * 63 > 255 ? 2 : 1;
  static constexpr int kShift = S::kSigned ? 8 : 3;

  static constexpr int kTileRows = 16;
  static constexpr int kDepth = 64;  // elements that a product covers
  static constexpr int kSteps = kPanelElements / kDepth;
  static constexpr std::int64_t kLaneBytes = 4 * V::kWidth;
  // Registers of tiles: a digit's sums come first, then activations, then digits of weights.
  static constexpr int kLeft = 4, kRights = 6;

  using Products = std::int32_t[kTileRows][V::kWidth];  // of a digit

  // The products of a tile's rows with a cell.
  struct Job {
    const DigitPanel<V>* panel;
    int cell, first, rows;
    bool starts;
    Products* products;
  };

  // As even as they can be.
  static int tile_rows_for(std::int64_t rows) {
    const std::int64_t tiles = (rows + kTileRows - 1) / kTileRows;
    return static_cast<int>((rows + tiles - 1) / tiles);
  }

  static void make_digits(int part, DigitPanel<V>& panel) {
    const auto scale = V::load_i32(panel.scales[part]);
    for (int c = part * (S::kPart / 4); c < (part + 1) * (S::kPart / 4); ++c) {
      const auto codes = V::load_bytes(panel.codes[c]);
      if constexpr (S::kSigned) {
        V::store_products(codes, scale, panel.codes[c], panel.high[c]);
      } else if constexpr (kDigits == 1) {
        V::store_bytes(panel.codes[c], V::scale_bytes(codes, scale));
      } else {
        V::store_bytes(panel.codes[c], V::scale_bytes(codes, V::and_i32(scale, 7)));
        V::store_bytes(panel.high[c], V::scale_bytes(codes, V::shr_i32(scale, kShift)));
      }
    }
  }

  // Lays the rows' activations tile after tile; a tile's rows behind the last repeat it.
  void pack(const void* const* rows, int count, std::int64_t block) {
    for (int r = 0; r < count; ++r) a_[r] = static_cast<const A*>(rows[r]) + block;
    const int tiles = (count + tile_rows_ - 1) / tile_rows_;
    for (int r = 0; r < tiles * tile_rows_; ++r) {
      const std::int8_t* q = a_[r < count ? r : count - 1]->q;
      for (int step = 0; step < kSteps; ++step)
        std::memcpy(left_[r / tile_rows_][step][r % tile_rows_], q + step * kDepth, kDepth);
    }
  }

  void multiply_step(const Job& job, int step) {
    tiles_.template load<kLeft>(left_[job.first / tile_rows_][step], kDepth);
    multiply_digit<0>(job, job.panel->codes, step);
    if constexpr (kDigits == 2) multiply_digit<1>(job, job.panel->high, step);
  }

  template <int kDigit>
  void multiply_digit(const Job& job, const std::uint8_t (*codes)[4 * V::kWidth], int step) {
    if (step == 0) tiles_.template zero<kDigit>();
    tiles_.template load<kRights + kDigit>(codes[step * (kDepth / 4)], kLaneBytes);
    tiles_.template dot<S::kSigned && kDigit == 1, kDigit, kLeft, kRights + kDigit>();
    if (step == kSteps - 1) tiles_.template store<kDigit>(job.products[kDigit][0], kLaneBytes);
  }

  // Takes a share of the rows' products into their sums.
  void fold_step(const Job& job, int step, Sums& sums) const {
    const int first = job.rows * step / kSteps, last = job.rows * (step + 1) / kSteps;
    with_constant<kTileRows / kSteps>(last - first,
                                      [&](auto rows) { fold_rows<rows>(job, first, sums); });
  }

  template <int R>
  void fold_rows(const Job& job, int first, Sums& sums) const {
    const FromPanel<V> source{job.panel};
    const A* a[R];
    float* sum[R];
    typename V::F32 acc[1][R];
    typename V::I32 total[1][R];
    for (int r = 0; r < R; ++r) {
      a[r] = a_[job.first + first + r];
      sum[r] = sums[job.first + first + r][job.cell];
      acc[0][r] = job.starts ? V::zero() : V::load(sum[r]);
      total[0][r] = V::load_i32(job.products[0][first + r]);
      if constexpr (kDigits == 2) {
        const auto high = V::load_i32(job.products[1][first + r]);
        total[0][r] = V::add_i32(total[0][r], V::shl_i32(high, kShift));
      }
    }
    finish_block<V, S, 1, R>(&source, a, total, acc);
    for (int r = 0; r < R; ++r) V::store(sum[r], acc[0][r]);
  }

  const int tile_rows_;
  typename V::Tiles tiles_;
  const A* a_[kRows];
  alignas(64) std::int8_t left_[kRows / kTileRows][kSteps][kTileRows][kDepth];
  alignas(64) Products products_[2][kDigits];
};

// So few rows that no tile pays take the kernels of another table.
template <class V, class F, const KernelTable& kOther>
void tile_matmul(const MatMulTask& task) {
  if (task.count <= V::kFewTileRows) return kOther.matmul[static_cast<int>(F::kId)](task);
  ManyRows<V, F, MatrixTiles<V, F>>(task).run();
}

}  // namespace strata
