// Q5_K: 256 elements in 8 sub-blocks of 32; 5-bit codes, 6-bit scales and minima per sub-block,
// two f16 factors: w = d * scale[j] * code - dmin * minimum[j].
#pragma once

#include "formats/k_scales.h"

namespace strata {

struct Q5_K {
  static constexpr FormatId kId = FormatId::Q5_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 176;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 2}, Field{12, 1}, Field{32, 4},
                                         Field{128, 4}};
  using Activation = Q8Block256;

  // The low four bits lie as in Q4_K. Bit j of byte 16 + i is the fifth bit of element i of
  // sub-block j.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block));
    const float dmin = f16_to_f32(load_u16(block + 2));
    for (int j = 0; j < 8; ++j) {
      const KScale s = k_scale(block + 4, j);
      const float scale = d * static_cast<float>(s.scale);
      const float minimum = dmin * static_cast<float>(s.minimum);
      const std::uint8_t* codes = block + 48 + (j / 2) * 32;
      for (int i = 0; i < 32; ++i) {
        const int low = (j % 2) != 0 ? codes[i] >> 4 : codes[i] & 0xf;
        const int code = low + 16 * ((block[16 + i] >> j) & 1);
        out[j * 32 + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[256];
    encode_k_scales<31>(in, block, codes);
    pack_k_nibbles(codes, block + 48);
    for (int i = 0; i < 32; ++i) {
      int bits = 0;
      for (int j = 0; j < 8; ++j) bits |= (codes[j * 32 + i] >> 4) << j;
      block[16 + i] = static_cast<std::uint8_t>(bits);
    }
  }

  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R], minima[R];
    for (int r = 0; r < R; ++r) total[r] = minima[r] = V::zero_i32();
    add_pair<V, R, 0>(w, a, total, minima);
    add_pair<V, R, 1>(w, a, total, minima);
    add_pair<V, R, 2>(w, a, total, minima);
    add_pair<V, R, 3>(w, a, total, minima);
    fold_k<V, R>(w, a, total, minima, acc);
  }

 private:
  // Sub-blocks 2 kPair and 2 kPair + 1. Four pairs of products add up to at most
  // 4 * 2 * 31 * 127 < 2^15, so half a sub-block is gathered at a time; add_k_scaled bounds the
  // wider sums.
  template <class V, int R, int kPair>
  [[gnu::always_inline]] static void add_pair(const std::uint8_t* w, const Activation* const* a,
                                              typename V::I32* total, typename V::I32* minima) {
    typename V::I32 low[R], high[R];
    for (int r = 0; r < R; ++r) low[r] = high[r] = V::zero_i32();
    for (int side = 0; side < 2; ++side) {
      typename V::Dots low_sum[R], high_sum[R];
      for (int r = 0; r < R; ++r) low_sum[r] = high_sum[r] = V::zero_dots();
      for (int c = 4 * side; c < 4 * side + 4; ++c) {
        const auto fifth = V::load_bytes(w + in_group(16) + c * 32);
        const auto bytes = V::load_bytes(w + in_group(48) + (kPair * 8 + c) * 32);
        const auto first =
            V::or_bytes(V::low_nibbles(bytes), V::template bit_field<2 * kPair, 1, 4>(fifth));
        const auto second =
            V::or_bytes(V::high_nibbles(bytes), V::template bit_field<2 * kPair + 1, 1, 4>(fifth));
        for (int r = 0; r < R; ++r) {
          const std::int8_t* q = a[r]->q + kPair * 64 + 4 * c;
          low_sum[r] = V::add_dots(low_sum[r], first, V::broadcast4(q));
          high_sum[r] = V::add_dots(high_sum[r], second, V::broadcast4(q + 32));
        }
      }
      for (int r = 0; r < R; ++r) {
        low[r] = V::add_i32(low[r], V::widen(low_sum[r]));
        high[r] = V::add_i32(high[r], V::widen(high_sum[r]));
      }
    }
    add_k_scaled<V, R>(w + in_group(4), 2 * kPair, low, a, total, minima);
    add_k_scaled<V, R>(w + in_group(4), 2 * kPair + 1, high, a, total, minima);
  }
};

}  // namespace strata
