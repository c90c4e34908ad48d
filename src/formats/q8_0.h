// Q8_0: 32 elements, an f16 scale and signed 8-bit codes: w = scale * code.
#pragma once

#include "formats/block32.h"

namespace strata {

struct Q8_0 {
  static constexpr FormatId kId = FormatId::Q8_0;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 34;
  static constexpr std::array kFields = {Field{2, 2}, Field{32, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    for (int i = 0; i < 32; ++i)
      out[i] = scale * static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
  }

  // The error is at most largest / 254, plus what rounding the scale to f16 moves.
  static void encode(const float* in, std::uint8_t* block) {
    store_u16(block, f32_to_f16(largest_magnitude(in, 32) / 127.0f));
    const float scale = f16_to_f32(load_u16(block));
    const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
    for (int i = 0; i < 32; ++i)
      block[2 + i] = static_cast<std::uint8_t>(to_signed_code(in[i] * inverse, 127));
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = kSignedCodes;
  static constexpr Offset kOffset = Offset::kNone;

  // A file may hold the code -128.
  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return V::load_bytes(w, in_group(2) + chunk_bytes(c));
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int) {
    return V::load_f16(w, 0);
  }
};

}  // namespace strata
