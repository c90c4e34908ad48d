// IQ2_XS: 256 elements in 16 sub-blocks of 16; points of eight elements, seven sign bits for each,
// a 4-bit scale per sub-block, an f16 factor: w = d / 8 * (2 scale[j] + 1) * sign * value.
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ2_XS {
  static constexpr FormatId kId = FormatId::IQ2_XS;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 74;
  static constexpr std::array kFields = {Field{2, 2}, Field{72, 72}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 2, kCodeBytes = 72;

  // 32 words of nine bits of index and seven of signs, then the scales, two in a byte.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor)) * kUnit;
    for (int j = 0; j < 16; ++j)
      out.scales[j] =
          static_cast<std::int8_t>(2 * ((codes[kScales + j / 2] >> (j % 2 * 4)) & 0xf) + 1);
    for (int k = 0; k < 32; ++k) {
      const unsigned word = load_u16(codes + 2 * k);
      put_point<V>(kIq2XsBook<V>.points[word & 511], even_signs(word >> 9), out.codes + 8 * k);
    }
  }
  static void decode(const std::uint8_t* block, float* out) { decode_unpacked<IQ2_XS>(block, out); }

  static void encode(const float* in, std::uint8_t* block) {
    const float unit = encode_factor<15>(in, kUnit, kTop, block);
    std::uint8_t* codes = block + kCodes;
    for (int j = 0; j < 16; ++j, in += 16) {
      const int scale = odd_scale_code<15>(in, 16, unit, kTop);
      std::uint8_t& pair = codes[kScales + j / 2];
      pair = static_cast<std::uint8_t>(j % 2 == 0 ? scale : pair | scale << 4);
      for (int k = 0; k < 2; ++k) {
        const auto v = split_even_signs(in + 8 * k, unit * static_cast<float>(2 * scale + 1));
        const int index = nearest_point(kIq2XsBook<void>, v.magnitudes).index;
        store_u16(codes + 4 * j + 2 * k,
                  static_cast<std::uint16_t>(static_cast<unsigned>(index) | (v.signs & 127) << 9));
      }
    }
  }

 private:
  static constexpr int kScales = 64;  // within the codes
  static constexpr float kUnit = 0.125f;
  static constexpr int kTop = 43;
};

}  // namespace strata
