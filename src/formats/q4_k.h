// Q4_K: 256 elements in 8 sub-blocks of 32; 4-bit codes, 6-bit scales and minima per sub-block,
// two f16 factors: w = d * scale[j] * code - dmin * minimum[j].
#pragma once

#include "formats/k_scales.h"

namespace strata {

struct Q4_K {
  static constexpr FormatId kId = FormatId::Q4_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 144;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 2}, Field{12, 1}, Field{128, 4}};
  using Activation = Q8Block256;

  // Each 32 code bytes hold two sub-blocks: the first in the low halves, the second in the high.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block));
    const float dmin = f16_to_f32(load_u16(block + 2));
    for (int j = 0; j < 8; ++j) {
      const KScale s = k_scale(block + 4, j);
      const float scale = d * static_cast<float>(s.scale);
      const float minimum = dmin * static_cast<float>(s.minimum);
      const std::uint8_t* codes = block + 16 + (j / 2) * 32;
      for (int i = 0; i < 32; ++i) {
        const int code = (j % 2) != 0 ? codes[i] >> 4 : codes[i] & 0xf;
        out[j * 32 + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[256];
    encode_k_scales<15>(in, block, codes);
    pack_k_nibbles(codes, block + 16);
  }

  // A sub-block's eight pairs of products add up to at most 8 * 2 * 15 * 127 < 2^15;
  // add_k_scaled bounds the wider sums.
  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R], minima[R];
    for (int r = 0; r < R; ++r) total[r] = minima[r] = V::zero_i32();
    for (int pair = 0; pair < 4; ++pair) {
      typename V::Dots low[R], high[R];
      for (int r = 0; r < R; ++r) low[r] = high[r] = V::zero_dots();
      for (int c = 0; c < 8; ++c) {
        const auto bytes = V::load_bytes(w + in_group(16) + (pair * 8 + c) * 32);
        const auto first = V::low_nibbles(bytes);
        const auto second = V::high_nibbles(bytes);
        for (int r = 0; r < R; ++r) {
          const std::int8_t* q = a[r]->q + pair * 64 + 4 * c;
          low[r] = V::add_dots(low[r], first, V::broadcast4(q));
          high[r] = V::add_dots(high[r], second, V::broadcast4(q + 32));
        }
      }
      typename V::I32 dot[R];
      for (int r = 0; r < R; ++r) dot[r] = V::widen(low[r]);
      add_k_scaled<V, R>(w + in_group(4), 2 * pair, dot, a, total, minima);
      for (int r = 0; r < R; ++r) dot[r] = V::widen(high[r]);
      add_k_scaled<V, R>(w + in_group(4), 2 * pair + 1, dot, a, total, minima);
    }
    fold_k<V, R>(w, a, total, minima, acc);
  }
};

}  // namespace strata
