// IQ3_S: 256 elements in 8 sub-blocks of 32; points of four elements, a sign bit per element, a
// 4-bit scale per sub-block, an f16 factor: w = d * (2 scale[j] + 1) * sign * value.
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ3_S {
  static constexpr FormatId kId = FormatId::IQ3_S;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 110;
  static constexpr std::array kFields = {Field{2, 2}, Field{108, 108}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 2, kCodeBytes = 108;

  // The low eight bits of 64 indices, their ninth bits, 32 bytes of signs, and the scales, two in a
  // byte.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor));
    for (int j = 0; j < 16; ++j)
      out.scales[j] =
          static_cast<std::int8_t>(2 * ((codes[kScales + j / 4] >> (j / 2 % 2 * 4)) & 0xf) + 1);
    for (int k = 0; k < 64; ++k) {
      const int high = (codes[kHigh + k / 8] >> (k % 8)) & 1;
      const unsigned signs = codes[kSigns + k / 2];
      put_point<V>(kIq3SBook<V>.points[codes[k] | high << 8], signs >> (k % 2 * 4),
                   out.codes + 4 * k);
    }
  }
  static void decode(const std::uint8_t* block, float* out) { decode_unpacked<IQ3_S>(block, out); }

  static void encode(const float* in, std::uint8_t* block) {
    std::fill(block, block + kBytes, std::uint8_t{0});
    const float unit = encode_factor<15>(in, 1.0f, kTop, block);
    std::uint8_t* codes = block + kCodes;
    const auto set_bits = [&](int at, int bits) {
      codes[at] = static_cast<std::uint8_t>(codes[at] | bits);
    };
    for (int j = 0; j < 8; ++j, in += 32) {
      const int scale = odd_scale_code<15>(in, 32, unit, kTop);
      set_bits(kScales + j / 2, scale << (j % 2 * 4));
      for (int k = 4 * j; k < 4 * j + 4; ++k) {
        const auto v = split_signs(in + 8 * (k % 4), unit * static_cast<float>(2 * scale + 1));
        set_bits(kSigns + k, static_cast<int>(v.signs));
        for (int side = 0; side < 2; ++side) {
          const int index = nearest_point(kIq3SBook<void>, v.magnitudes + 4 * side).index;
          set_bits(2 * k + side, index & 0xff);
          set_bits(kHigh + k / 4, (index >> 8) << (k % 4 * 2 + side));
        }
      }
    }
  }

 private:
  static constexpr int kHigh = 64, kSigns = 72, kScales = 104;  // within the codes
  static constexpr int kTop = 15;
};

}  // namespace strata
