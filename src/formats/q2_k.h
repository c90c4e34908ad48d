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

  static constexpr int kPart = 16;
  static constexpr int kTopCode = 3;
  static constexpr Offset kOffset = Offset::kOwnFactor;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return two_bit_codes<V>(w, in_group(kCodes), c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 scale(typename V::Weights w, int part) {
    return V::and_i32(V::load_u8_i32(w, lane_bytes(part)), 0xf);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 offset(typename V::Weights w, int part) {
    return V::shr_i32(V::load_u8_i32(w, lane_bytes(part)), 4);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w) {
    return V::load_f16(w, in_group(kFactors));
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 offset_factor(typename V::Weights w) {
    return V::load_f16(w, in_group(kFactors + 2));
  }

 private:
  static constexpr int kCodes = 16;
  static constexpr int kFactors = 80;
};

}  // namespace strata
