// Fills the part of a KernelTable that tiles have kernels for, from one vocabulary.
#pragma once

#include "device/cpu/kernels/peak.h"
#include "device/cpu/kernels/tiles.h"
#include "formats/all.h"

namespace strata {

// As peak_int8, in tiles.
template <class V>
std::int64_t peak_int8_tiles(std::int64_t rounds) {
  constexpr int kTile = 16 * 64;
  alignas(64) std::uint8_t operands[4][kTile];
  alignas(64) std::int32_t sums[kTile / 4];
  for (auto& tile : operands)
    for (int i = 0; i < kTile; ++i) tile[i] = static_cast<std::uint8_t>(i % 2 == 0 ? 1 : -1);
  typename V::Tiles tiles(16);
  tiles.template zero<0>();
  tiles.template zero<1>();
  tiles.template zero<2>();
  tiles.template zero<3>();
  for (std::int64_t step = 0; step < rounds * kPeakSteps; ++step) {
    tiles.template load<4>(operands[0], 64);
    tiles.template load<5>(operands[1], 64);
    tiles.template load<6>(operands[2], 64);
    tiles.template load<7>(operands[3], 64);
    tiles.template dot<true, 0, 4, 6>();
    tiles.template dot<true, 1, 5, 6>();
    tiles.template dot<true, 2, 4, 7>();
    tiles.template dot<true, 3, 5, 7>();
  }
  tiles.template store<0>(sums, 64);
  touch(sums);
  return rounds * kPeakSteps * 4 * kTile * 16 * 2;
}

template <class V, class F, const KernelTable& kOther>
constexpr void add_tile_matmul(KernelTable& table) {
  if constexpr (activation_kind<typename F::Activation>() == ActivationKind::kQ8x256) {
    table.matmul[static_cast<int>(F::kId)] = tile_matmul<V, F, kOther>;
    table.matmul_peak[static_cast<int>(F::kId)] = peak_int8_tiles<V>;
  }
}

template <class V, const KernelTable& kOther, class... F>
constexpr void add_tile_matmuls(KernelTable& table, FormatList<F...>) {
  (add_tile_matmul<V, F, kOther>(table), ...);
}

// What tiles have a kernel for and kOther's does more slowly; see with_tiles().
template <class V, const KernelTable& kOther>
constexpr KernelTable make_tile_table(const char* name) {
  KernelTable table{};
  table.name = name;
  add_tile_matmuls<V, kOther>(table, AllFormats{});
  table.peak_int8 = peak_int8_tiles<V>;
  return table;
}

}  // namespace strata
