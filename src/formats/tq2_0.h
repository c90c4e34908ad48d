// TQ2_0: 256 elements, ternary codes of two bits and an f16 scale: w = d * (code - 1).
#pragma once

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"
#include "formats/two_bits.h"

namespace strata {

struct TQ2_0 {
  static constexpr FormatId kId = FormatId::TQ2_0;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 66;
  static constexpr std::array kFields = {Field{64, 4}, Field{2, 2}};
  using Activation = Q8Block256;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block + kFactor));
    for (int i = 0; i < 256; ++i) out[i] = d * static_cast<float>(two_bits(block, i) - 1);
  }

  // The error is at most half the largest magnitude, plus what rounding the scale to f16 moves.
  static void encode(const float* in, std::uint8_t* block) {
    const float d = largest_magnitude(in, 256);
    const float inverse = d > 0 ? 1.0f / d : 0.0f;
    int codes[256];
    for (int i = 0; i < 256; ++i) codes[i] = to_signed_code(in[i] * inverse, 1) + 1;
    pack_two_bits(codes, block);
    store_u16(block + kFactor, f32_to_f16(d));
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = 3;
  static constexpr Offset kOffset = Offset::kScaled;
  static constexpr int kZeroCode = 1;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return two_bit_codes<V>(w, 0, c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 scale(typename V::Weights w, int) {
    static_cast<void>(w);
    return V::broadcast_i32(1);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w) {
    return V::load_f16(w, in_group(kFactor));
  }

 private:
  static constexpr int kFactor = 64;
};

}  // namespace strata
