// Q4_0: 32 elements, an f16 scale and 4-bit codes: w = scale * (code - 8).
#pragma once

#include <cmath>

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

struct Q4_0 {
  static constexpr FormatId kId = FormatId::Q4_0;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 18;
  static constexpr std::array kFields = {Field{2, 2}, Field{16, 4}};
  using Activation = Q8Block32;

  // Byte i holds element i in its low half and element i + 16 in its high half.
  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    for (int i = 0; i < 16; ++i) {
      out[i] = scale * static_cast<float>((block[2 + i] & 0xf) - 8);
      out[i + 16] = scale * static_cast<float>((block[2 + i] >> 4) - 8);
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    float extreme = 0;  // the value of largest magnitude, with its sign
    for (int i = 0; i < 32; ++i)
      if (std::fabs(in[i]) > std::fabs(extreme)) extreme = in[i];
    const std::uint16_t scale = f32_to_f16(extreme / -8.0f);
    const float rounded = f16_to_f32(scale);
    const float inverse = rounded != 0 ? 1.0f / rounded : 0.0f;
    store_u16(block, scale);
    for (int i = 0; i < 16; ++i) {
      const int low = to_code(in[i] * inverse + 8.0f, 15);
      const int high = to_code(in[i + 16] * inverse + 8.0f, 15);
      block[2 + i] = static_cast<std::uint8_t>(low | (high << 4));
    }
  }

  // sum(w a) = scale * a.scale * sum(code * q) - 8 * scale * a.scaled_sum
  template <class V, int R>
  static void accumulate(const std::uint8_t* w, const Activation* const* a, typename V::F32* acc) {
    typename V::I32 dot[R];
    for (int r = 0; r < R; ++r) dot[r] = V::zero_i32();
    for (int c = 0; c < 4; ++c) {
      const auto bytes = V::load_bytes(w + in_group(2) + c * 32);
      const auto low = V::low_nibbles(bytes);
      const auto high = V::high_nibbles(bytes);
      for (int r = 0; r < R; ++r) {
        dot[r] = V::dot4_u8s8(dot[r], low, V::broadcast4(a[r]->q + 4 * c));
        dot[r] = V::dot4_u8s8(dot[r], high, V::broadcast4(a[r]->q + 16 + 4 * c));
      }
    }
    const auto scale = V::load_f16(w);
    const auto offset = V::mul(scale, V::broadcast(-8.0f));
    for (int r = 0; r < R; ++r) {
      acc[r] = V::fma(V::mul(scale, V::broadcast(a[r]->scale)), V::to_f32(dot[r]), acc[r]);
      acc[r] = V::fma(offset, V::broadcast(a[r]->scaled_sum), acc[r]);
    }
  }
};

}  // namespace strata
