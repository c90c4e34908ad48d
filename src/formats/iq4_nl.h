// IQ4_NL: 32 elements, an f16 scale and 4-bit codes of unevenly spaced values:
// w = scale * value[code].
#pragma once

#include "formats/block32.h"
#include "formats/value_table.h"

namespace strata {

struct IQ4_NL {
  static constexpr FormatId kId = FormatId::IQ4_NL;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 18;
  static constexpr std::array kFields = {Field{2, 2}, Field{16, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = f16_to_f32(load_u16(block));
    for (int i = 0; i < 32; ++i)
      out[i] = scale * static_cast<float>(kNonlinearValues<void>[nibble(block + 2, i)]);
  }

  // The value of largest magnitude becomes -127, whatever its sign. The other side ends at 113, and
  // no two values are 24 or more apart: the error is at most largest * 14 / 127, plus what rounding
  // the scale to f16 moves.
  static void encode(const float* in, std::uint8_t* block) {
    store_u16(block, f32_to_f16(extreme_value(in, 32) / -127.0f));
    const float scale = f16_to_f32(load_u16(block));
    const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
    std::uint8_t codes[32];
    for (int i = 0; i < 32; ++i) codes[i] = nearest_value(kNonlinearValues<void>, in[i] * inverse);
    pack_nibbles(codes, block + 2);
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = kSignedCodes;
  static constexpr Offset kOffset = Offset::kNone;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return value_codes<V, 4>(kNonlinearValues<V>, w, in_group(2), c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int) {
    return V::load_f16(w, 0);
  }
};

}  // namespace strata
