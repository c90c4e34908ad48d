// Q5_0: 32 elements, an f16 scale and 5-bit codes: w = scale * (code - 16).
#pragma once

#include "formats/block32.h"

namespace strata {

struct Q5_0 {
  static constexpr FormatId kId = FormatId::Q5_0;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 22;
  static constexpr std::array kFields = {Field{2, 2}, Field{4, 4}, Field{16, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    for (int i = 0; i < 32; ++i) {
      const int code = nibble(block + 6, i) + 16 * fifth_bit(block + 2, i);
      out[i] = scale * static_cast<float>(code - 16);
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[32];
    encode_symmetric<16>(in, block, codes);
    pack_fifth_bits(codes, block + 2);
    pack_nibbles(codes, block + 6);
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = 31;
  static constexpr Offset kOffset = Offset::kAdded;

  // w = scale * code + -16 * scale
  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return five_bit_codes<V>(w, in_group(2), in_group(6), c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int) {
    return V::load_f16(w, 0);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 offset(typename V::Weights w, int) {
    return V::mul(V::load_f16(w, 0), V::broadcast(-16.0f));
  }
};

}  // namespace strata
