// Q4_0: 32 elements, an f16 scale and 4-bit codes: w = scale * (code - 8).
#pragma once

#include "formats/block32.h"

namespace strata {

struct Q4_0 {
  static constexpr FormatId kId = FormatId::Q4_0;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 18;
  static constexpr std::array kFields = {Field{2, 2}, Field{16, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    for (int i = 0; i < 32; ++i) out[i] = scale * static_cast<float>(nibble(block + 2, i) - 8);
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[32];
    encode_symmetric<8>(in, block, codes);
    pack_nibbles(codes, block + 2);
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = 15;
  static constexpr Offset kOffset = Offset::kAdded;

  // w = scale * code + -8 * scale
  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    const auto bytes = V::load_bytes(w, in_group(2) + chunk_bytes(c % 4));
    return c < 4 ? V::low_nibbles(bytes) : V::high_nibbles(bytes);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int) {
    return V::load_f16(w, 0);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 offset(typename V::Weights w, int) {
    return V::mul(V::load_f16(w, 0), V::broadcast(-8.0f));
  }
};

}  // namespace strata
