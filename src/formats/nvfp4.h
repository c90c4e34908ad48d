// NVFP4: 64 elements in 4 sub-blocks of 16; 4-bit floats and an 8-bit float as scale (E4M3 without
// sign): w = scale[j] / 2 * value[code], with the doubled values of value_table.h. The tensor's own
// f32 scale comes beside it, in the tensor `<name>.scale`.
#pragma once

#include "formats/block32.h"
#include "formats/value_table.h"

namespace strata {

struct NVFP4 {
  static constexpr FormatId kId = FormatId::NVFP4;
  static constexpr int kElements = 64;
  static constexpr int kBytes = 36;
  static constexpr std::array kFields = {Field{4, 1}, Field{32, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    for (int i = 0; i < 64; ++i) {
      const int at = i % 16;
      const int byte = block[4 + i / 16 * 8 + at % 8];
      const int code = at < 8 ? byte & 0xf : byte >> 4;
      out[i] = half_scale(block[i / 16]) * static_cast<float>(kFloat4Values<void>[code]);
    }
  }

  // For magnitudes up to 6 * 448. Values of a sub-block are at most a third of its largest apart,
  // and the scale is off by at most 1/16 of itself or 2^-10: with the largest magnitude, the error
  // is at most largest * (1 / 6 + 1 / 8) + 6 * 2^-10.
  static void encode(const float* in, std::uint8_t* block) {
    for (int j = 0; j < 4; ++j, in += 16) {
      const float wanted = largest_magnitude(in, 16) / 12.0f;
      int scale = 0;
      for (int code = 1; code < 0x7f; ++code)
        if (std::fabs(half_scale(code) - wanted) < std::fabs(half_scale(scale) - wanted))
          scale = code;
      block[j] = static_cast<std::uint8_t>(scale);
      const float inverse = scale > 0 ? 1.0f / half_scale(scale) : 0.0f;
      const auto code = [&](int i) { return nearest_value(kFloat4Values<void>, in[i] * inverse); };
      for (int i = 0; i < 8; ++i)
        block[4 + 8 * j + i] = static_cast<std::uint8_t>(code(i) | code(i + 8) << 4);
    }
  }

  static constexpr int kPart = 16;
  static constexpr int kTopCode = kSignedCodes;
  static constexpr Offset kOffset = Offset::kNone;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return value_codes<V, 2>(kFloat4Values<V>, w, in_group(4), c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int part) {
    return half_scales<V>(V::load_u8_i32(w, lane_bytes(part)));
  }

 private:
  // Half the scale. As bits of an f32, exponent and mantissa stand for 2^-120 of their value, below
  // the least exponent too. The code 0x7f, which is no number, counts as zero; the top bit counts
  // for nothing but that.
  static float half_scale(int code) {
    return code == 0x7f ? 0.0f : std::bit_cast<float>((code & 0x7f) << 20) * 0x1p119f;
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 half_scales(typename V::I32 code) {
    // -1 where the code is a number, else 0.
    const auto away = V::sub_i32(code, V::broadcast_i32(0x7f));
    const auto minus =
        V::max_i32(V::sub_i32(V::zero_i32(), V::mul_i32(away, away)), V::broadcast_i32(-1));
    const auto bits = V::mul_i32(V::shl_i32(V::and_i32(code, 0x7f), 20), minus);
    return V::mul(V::from_bits(V::sub_i32(V::zero_i32(), bits)), V::broadcast(0x1p119f));
  }
};

}  // namespace strata
