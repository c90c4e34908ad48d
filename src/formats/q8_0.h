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

  // A file may hold the code -128: a pair of products is at most 2 * 128 * 127 < 2^15, the sum
  // 128 * 127 * 32 < 2^19.
  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 dot[R];
    for (int r = 0; r < R; ++r) dot[r] = V::zero_i32();
    for (int c = 0; c < 8; ++c) {
      const auto codes = V::load_bytes(w + in_group(2) + c * 32);
      for (int r = 0; r < R; ++r)
        dot[r] = V::dot4_s8s8(dot[r], codes, V::broadcast4(a[r]->q + 4 * c));
    }
    add_scaled<V, R>(V::load_f16(w), a, dot, acc);
  }
};

}  // namespace strata
