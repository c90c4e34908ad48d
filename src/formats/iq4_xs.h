// IQ4_XS: 256 elements in 8 sub-blocks of 32; 4-bit codes of unevenly spaced values, a 6-bit scale
// per sub-block, an f16 factor: w = d * (scale[j] - 32) * value[code].
#pragma once

#include <algorithm>

#include "formats/block32.h"
#include "formats/value_table.h"

namespace strata {

struct IQ4_XS {
  static constexpr FormatId kId = FormatId::IQ4_XS;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 136;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 1}, Field{4, 1}, Field{128, 4}};
  using Activation = Q8Block256;

  // The scales' high two bits are the bit pairs of two bytes, their low four the halves of four.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block));
    for (int j = 0; j < 8; ++j) {
      const int low = (block[kLow + j / 2] >> (j % 2 * 4)) & 0xf;
      const int high = (block[kHigh + j / 4] >> (j % 4 * 2)) & 3;
      const float scale = d * static_cast<float>((low | high << 4) - 32);
      for (int i = 0; i < 32; ++i) {
        const int code = nibble(block + kCodes + 16 * j, i);
        out[32 * j + i] = scale * static_cast<float>(kNonlinearValues<void>[code]);
      }
    }
  }

  // As IQ4_NL, and the scale rounds to half a unit of largest / 31.
  static void encode(const float* in, std::uint8_t* block) {
    float scales[8], top = 0;
    for (int j = 0; j < 8; ++j) {
      scales[j] = extreme_value(in + 32 * j, 32) / -127.0f;
      top = std::max(top, std::fabs(scales[j]));
    }
    std::fill(block, block + kCodes, std::uint8_t{0});
    store_u16(block, f32_to_f16(top / 31.0f));
    const float d = f16_to_f32(load_u16(block));
    for (int j = 0; j < 8; ++j) {
      const int scale = d > 0 ? to_signed_code(scales[j] / d, 31) : 0;
      std::uint8_t& low = block[kLow + j / 2];
      std::uint8_t& high = block[kHigh + j / 4];
      low = static_cast<std::uint8_t>(low | ((scale + 32) & 0xf) << (j % 2 * 4));
      high = static_cast<std::uint8_t>(high | (scale + 32) >> 4 << (j % 4 * 2));
      const float inverse = scale != 0 ? 1.0f / (d * static_cast<float>(scale)) : 0.0f;
      std::uint8_t codes[32];
      for (int i = 0; i < 32; ++i)
        codes[i] = nearest_value(kNonlinearValues<void>, in[32 * j + i] * inverse);
      pack_nibbles(codes, block + kCodes + 16 * j);
    }
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = kSignedCodes;
  static constexpr Offset kOffset = Offset::kNone;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return value_codes<V, 4>(kNonlinearValues<V>, w, in_group(kCodes), c);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 scale(typename V::Weights w, int part) {
    const auto low_bits = V::load_u8_i32(w, in_group(kLow) + lane_bytes(part / 2));
    const auto high_bits = V::load_u8_i32(w, in_group(kHigh) + lane_bytes(part / 4));
    const auto low = V::and_i32(V::shr_i32(low_bits, part % 2 * 4), 0xf);
    const auto high = V::and_i32(V::shr_i32(high_bits, part % 4 * 2), 3);
    return V::sub_i32(V::or_i32(low, V::shl_i32(high, 4)), V::broadcast_i32(32));
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w) {
    return V::load_f16(w, 0);
  }

 private:
  static constexpr int kHigh = 2;
  static constexpr int kLow = 4;
  static constexpr int kCodes = 8;
};

}  // namespace strata
