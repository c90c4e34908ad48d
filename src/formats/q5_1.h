// Q5_1: 32 elements, an f16 scale and minimum and 5-bit codes: w = scale * code + minimum.
#pragma once

#include "formats/block32.h"

namespace strata {

struct Q5_1 {
  static constexpr FormatId kId = FormatId::Q5_1;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 24;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 2}, Field{4, 4}, Field{16, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    const float minimum = f16_to_f32(load_u16(block + 2));
    for (int i = 0; i < 32; ++i) {
      const int code = nibble(block + 8, i) + 16 * fifth_bit(block + 4, i);
      out[i] = scale * static_cast<float>(code) + minimum;
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[32];
    encode_affine<31>(in, block, codes);
    pack_fifth_bits(codes, block + 4);
    pack_nibbles(codes, block + 8);
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = 31;
  static constexpr Offset kOffset = Offset::kAdded;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return five_bit_codes<V>(w, in_group(4), in_group(8), c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int) {
    return V::load_f16(w, 0);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 offset(typename V::Weights w, int) {
    return V::load_f16(w, in_group(2));
  }
};

}  // namespace strata
