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

  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R];
    for (int r = 0; r < R; ++r) total[r] = V::zero_i32();
    for (int half = 0; half < 2; ++half) {
      add_sub_block<V, R, 0>(w, half, a, total);
      add_sub_block<V, R, 1>(w, half, a, total);
      add_sub_block<V, R, 2>(w, half, a, total);
      add_sub_block<V, R, 3>(w, half, a, total);
    }
    add_scaled<V, R>(V::load_f16(w), a, total, acc);
  }

 private:
  static constexpr int kHigh = 2;
  static constexpr int kLow = 4;
  static constexpr int kCodes = 8;

  // Sub-block 4 half + kPart. 127 * 127 * 32 times |scale| <= 32, eight times, stays below 2^27.
  template <class V, int R, int kPart>
  [[gnu::always_inline]] static void add_sub_block(const std::uint8_t* w, int half,
                                                   const Activation* const* a,
                                                   typename V::I32* total) {
    const int j = 4 * half + kPart;
    typename V::I32 dot[R];
    dot_values<V, R, 4>(kNonlinearValues<V>, w + in_group(kCodes) + j * 128, a, 32 * j, dot);
    const auto low_bits = V::load_u8_i32(w + in_group(kLow) + j / 2 * kLanes);
    const auto high_bits = V::load_u8_i32(w + in_group(kHigh) + half * kLanes);
    const auto low = V::template and_i32<0xf>(V::template shr_i32<kPart % 2 * 4>(low_bits));
    const auto high = V::template and_i32<3>(V::template shr_i32<kPart * 2>(high_bits));
    const auto scale =
        V::sub_i32(V::or_i32(low, V::template shl_i32<4>(high)), V::broadcast_i32(32));
    for (int r = 0; r < R; ++r) total[r] = V::add_i32(total[r], V::mul_i32(scale, dot[r]));
  }
};

}  // namespace strata
