// IQ2_S: 256 elements in 16 sub-blocks of 16; points of eight elements, a sign bit per element, a
// 4-bit scale per sub-block, an f16 factor: w = d / 8 * (2 scale[j] + 1) * sign * value.
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ2_S {
  static constexpr FormatId kId = FormatId::IQ2_S;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 82;
  static constexpr std::array kFields = {Field{2, 2}, Field{80, 80}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 2, kCodeBytes = 80;

  // The low eight bits of 32 indices, 32 bytes of signs, the indices' high two bits, four in a
  // byte, and the scales, two in a byte.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor)) * kUnit;
    for (int j = 0; j < 16; ++j)
      out.scales[j] =
          static_cast<std::int8_t>(2 * ((codes[kScales + j / 2] >> (j % 2 * 4)) & 0xf) + 1);
    for (int k = 0; k < 32; ++k) {
      const int high = (codes[kHigh + k / 4] >> (k % 4 * 2)) & 3;
      put_point<V>(kIq2SBook<V>.points[codes[k] | high << 8], codes[kSigns + k], out.codes + 8 * k);
    }
  }
  static void decode(const std::uint8_t* block, float* out) { decode_unpacked<IQ2_S>(block, out); }

  static void encode(const float* in, std::uint8_t* block) {
    std::fill(block, block + kBytes, std::uint8_t{0});
    const float unit = encode_factor<15>(in, kUnit, kTop, block);
    std::uint8_t* codes = block + kCodes;
    const auto set_bits = [&](int at, int bits) {
      codes[at] = static_cast<std::uint8_t>(codes[at] | bits);
    };
    for (int k = 0; k < 32; ++k) {
      const int j = k / 2;
      const int scale = odd_scale_code<15>(in + 16 * j, 16, unit, kTop);
      const auto v = split_signs(in + 8 * k, unit * static_cast<float>(2 * scale + 1));
      const int index = nearest_point(kIq2SBook<void>, v.magnitudes).index;
      set_bits(k, index & 0xff);
      set_bits(kHigh + k / 4, (index >> 8) << (k % 4 * 2));
      set_bits(kSigns + k, static_cast<int>(v.signs));
      set_bits(kScales + j / 2, scale << (j % 2 * 4));
    }
  }

 private:
  static constexpr int kSigns = 32, kHigh = 64, kScales = 72;  // within the codes
  static constexpr float kUnit = 0.125f;
  static constexpr int kTop = 43;
};

}  // namespace strata
