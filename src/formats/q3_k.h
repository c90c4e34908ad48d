// Q3_K: 256 elements in 16 sub-blocks of 16; 3-bit codes, a 6-bit scale per sub-block, an f16
// factor: w = d * (scale[j] - 32) * (code - 4).
#pragma once

#include "formats/k_scales.h"
#include "formats/two_bits.h"

namespace strata {

struct Q3_K {
  static constexpr FormatId kId = FormatId::Q3_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 110;
  static constexpr std::array kFields = {Field{32, 4}, Field{64, 4}, Field{12, 1}, Field{2, 2}};
  using Activation = Q8Block256;

  // Bit j of byte i is the third bit of element i of the j-th 32 elements. The scales' low four
  // bits are the halves of 8 bytes, scales 8..15 in the high ones; their high two bits follow in
  // 4 bytes, four scales a bit pair.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block + kFactor));
    for (int i = 0; i < 256; ++i) {
      const int j = i / 16;
      const int low = (block[kScales + j % 8] >> (j / 8 * 4)) & 0xf;
      const int high = (block[kScales + 8 + j % 4] >> (j / 4 * 2)) & 3;
      const int code = two_bits(block + kCodes, i) | ((block[i % 32] >> (i / 32)) & 1) << 2;
      out[i] = d * static_cast<float>((low | high << 4) - 32) * static_cast<float>(code - 4);
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    int scales[16], codes[256];
    std::fill(block, block + kBytes, std::uint8_t{0});
    encode_signed_scales<4, 31>(in, block + kFactor, scales, codes);
    const auto set_bits = [&](int at, int bits) {
      block[at] = static_cast<std::uint8_t>(block[at] | bits);
    };
    for (int j = 0; j < 16; ++j) {
      const int scale = scales[j] + 32;
      set_bits(kScales + j % 8, (scale & 0xf) << (j / 8 * 4));
      set_bits(kScales + 8 + j % 4, (scale >> 4) << (j / 4 * 2));
    }
    pack_two_bits(codes, block + kCodes);
    for (int i = 0; i < 256; ++i) set_bits(i % 32, (codes[i] >> 2) << (i / 32));
  }

  static constexpr int kPart = 16;
  static constexpr int kTopCode = 7;
  static constexpr Offset kOffset = Offset::kScaled;
  static constexpr int kZeroCode = 4;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    const auto third = V::bit_field(V::load_bytes(w, chunk_bytes(c % 8)), c / 8, 1, 2);
    return V::or_bytes(two_bit_codes<V>(w, in_group(kCodes), c), third);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 scale(typename V::Weights w, int part) {
    const auto bits = [&](int byte) {
      return V::load_u8_i32(w, in_group(kScales) + lane_bytes(byte));
    };
    const auto low = V::and_i32(V::shr_i32(bits(part % 8), part / 8 * 4), 0xf);
    const auto high = V::and_i32(V::shr_i32(bits(8 + part % 4), part / 4 * 2), 3);
    return V::sub_i32(V::or_i32(low, V::shl_i32(high, 4)), V::broadcast_i32(32));
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w) {
    return V::load_f16(w, in_group(kFactor));
  }

 private:
  static constexpr int kCodes = 32;
  static constexpr int kScales = 96;
  static constexpr int kFactor = 108;
};

}  // namespace strata
