// Products where an instruction multiplies two rows of activations at once. Their integers lie in
// total[g][r] and total[g][r + 1] together, in the vocabulary's order, until they are separated.
#pragma once

#include "device/cpu/kernels/panel.h"

namespace strata {

template <class V, class Source, int R>
constexpr bool kInTwoRows = kTwoRows<V> && !Source::kInPlace && R % 2 == 0;

// As add_part.
template <class V, class S, bool kScaled, int G, int R>
[[gnu::always_inline]] inline void add_part_in_two_rows(const FromPanel<V>* s, int chunk,
                                                        const std::int8_t* const* q,
                                                        const typename V::I32* scale,
                                                        typename V::I32 (*total)[R]) {
  typename V::I32 sums[G][R];
  for (int g = 0; g < G; ++g)
    for (int r = 0; r < R; ++r) sums[g][r] = V::zero_i32();
  repeat<V::kUnrolled, S::kPart / 8>([&](auto pair) __attribute__((always_inline)) {
    for (int g = 0; g < G; ++g) {
      const auto* codes = s[g].panel->codes + chunk + 2 * pair;
      const auto first = V::load_bytes(codes[0]), second = V::load_bytes(codes[1]);
      for (int r = 0; r < R; r += 2) {
        const auto rows = V::two_rows(q[r], q[r + 1], pair);
        sums[g][r] = V::add_two_rows(sums[g][r], first, rows);
        sums[g][r + 1] = V::add_two_rows(sums[g][r + 1], second, rows);
      }
    }
  });
  for (int g = 0; g < G; ++g)
    for (int r = 0; r < R; ++r)
      if constexpr (kScaled)
        total[g][r] = V::add_scaled(total[g][r], sums[g][r], V::two_row_scales(scale[g], r % 2));
      else
        total[g][r] = V::add_i32(total[g][r], sums[g][r]);
}

template <class V, int G, int R>
[[gnu::always_inline]] inline void separate_rows(typename V::I32 (*total)[R]) {
  for (int g = 0; g < G; ++g)
    for (int r = 0; r < R; r += 2) V::separate_rows(total[g][r], total[g][r + 1]);
}

}  // namespace strata
