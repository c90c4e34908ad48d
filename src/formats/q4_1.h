// Q4_1: 32 elements, an f16 scale and minimum and 4-bit codes: w = scale * code + minimum.
#pragma once

#include "formats/block32.h"

namespace strata {

struct Q4_1 {
  static constexpr FormatId kId = FormatId::Q4_1;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 20;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 2}, Field{16, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    const float minimum = f16_to_f32(load_u16(block + 2));
    for (int i = 0; i < 32; ++i)
      out[i] = scale * static_cast<float>(nibble(block + 4, i)) + minimum;
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[32];
    encode_affine<15>(in, block, codes);
    pack_nibbles(codes, block + 4);
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = 15;
  static constexpr Offset kOffset = Offset::kAdded;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    const auto bytes = V::load_bytes(w, in_group(4) + chunk_bytes(c % 4));
    return c < 4 ? V::low_nibbles(bytes) : V::high_nibbles(bytes);
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
