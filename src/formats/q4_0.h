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

  // sum(w a) = scale * a.scale * sum(code * q) - 8 * scale * a.scaled_sum
  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 dot[R];
    dot_nibbles<V, R>(w + in_group(2), a, dot);
    const auto scale = V::load_f16(w);
    add_scaled<V, R>(scale, a, dot, acc);
    add_offset<V, R>(V::mul(scale, V::broadcast(-8.0f)), a, acc);
  }
};

}  // namespace strata
