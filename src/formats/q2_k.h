// Q2_K: 256 elements in 16 sub-blocks of 16; 2-bit codes, 4-bit scales and minima per sub-block,
// two f16 factors: w = d * scale[j] * code - dmin * minimum[j].
#pragma once

#include "formats/k_scales.h"
#include "formats/two_bits.h"

namespace strata {

struct Q2_K {
  static constexpr FormatId kId = FormatId::Q2_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 84;
  static constexpr std::array kFields = {Field{16, 1}, Field{64, 4}, Field{2, 2}, Field{2, 2}};
  using Activation = Q8Block256;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block + kFactors));
    const float dmin = f16_to_f32(load_u16(block + kFactors + 2));
    for (int i = 0; i < 256; ++i) {
      const int scales = block[i / 16];
      const float scale = d * static_cast<float>(scales & 0xf);
      const float minimum = dmin * static_cast<float>(scales >> 4);
      out[i] = scale * static_cast<float>(two_bits(block + kCodes, i)) - minimum;
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[256];
    encode_scales_and_minima<3, 16, 15>(in, block + kFactors, codes, [=](int j, KScale s) {
      block[j] = static_cast<std::uint8_t>(s.scale | s.minimum << 4);
    });
    pack_two_bits(codes, block + kCodes);
  }

  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R], minima[R];
    for (int r = 0; r < R; ++r) total[r] = minima[r] = V::zero_i32();
    for (int half = 0; half < 2; ++half)
      for (int side = 0; side < 2; ++side) {
        add_sub_block<V, R, 0>(w, half, side, a, total, minima);
        add_sub_block<V, R, 1>(w, half, side, a, total, minima);
        add_sub_block<V, R, 2>(w, half, side, a, total, minima);
        add_sub_block<V, R, 3>(w, half, side, a, total, minima);
      }
    fold_k<V, R>(w + in_group(kFactors), a, total, minima, acc);
  }

 private:
  static constexpr int kCodes = 16;
  static constexpr int kFactors = 80;

  // The 16 elements on one side of a quarter. Four pairs of products add up to at most
  // 4 * 2 * 3 * 127 < 2^15; 3 * 127 * 16 times the scale, sixteen times, stays below 2^21.
  template <class V, int R, int kQuarter>
  [[gnu::always_inline]] static void add_sub_block(const std::uint8_t* w, int half, int side,
                                                   const Activation* const* a,
                                                   typename V::I32* total,
                                                   typename V::I32* minima) {
    const int j = half * 8 + kQuarter * 2 + side;
    typename V::Dots dot[R];
    for (int r = 0; r < R; ++r) dot[r] = V::zero_dots();
    for (int c = 0; c < 4; ++c) {
      const auto bytes = V::load_bytes(w + in_group(kCodes) + (half * 8 + side * 4 + c) * 32);
      const auto codes = V::template bit_field<2 * kQuarter, 3, 0>(bytes);
      for (int r = 0; r < R; ++r)
        dot[r] = V::add_dots(dot[r], codes, V::broadcast4(a[r]->q + 16 * j + 4 * c));
    }
    const auto scales = V::load_u8_i32(w + j * kLanes);
    const auto scale = V::template and_i32<0xf>(scales);
    const auto minimum = V::template shr_i32<4>(scales);
    for (int r = 0; r < R; ++r) {
      total[r] = V::add_i32(total[r], V::mul_i32(scale, V::widen(dot[r])));
      minima[r] = V::add_i32(minima[r], V::mul_i32(minimum, V::broadcast_i32(a[r]->sums[j])));
    }
  }
};

}  // namespace strata
