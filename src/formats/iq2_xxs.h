// IQ2_XXS: 256 elements in 8 sub-blocks of 32; points of eight elements, seven sign bits for each,
// a 4-bit scale per sub-block, an f16 factor: w = d / 8 * (2 scale[j] + 1) * sign * value.
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ2_XXS {
  static constexpr FormatId kId = FormatId::IQ2_XXS;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 66;
  static constexpr std::array kFields = {Field{2, 2}, Field{64, 64}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 2, kCodeBytes = 64;

  // A sub-block is four bytes of indices and a word: four times seven signs, then the scale.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor)) * kUnit;
    for (int j = 0; j < 8; ++j, codes += 8) {
      const std::uint32_t word = load_u32(codes + 4);
      out.scales[2 * j] = out.scales[2 * j + 1] = static_cast<std::int8_t>(2 * (word >> 28) + 1);
      for (int k = 0; k < 4; ++k)
        put_point<V>(kIq2XxsBook<V>.points[codes[k]], even_signs((word >> (7 * k)) & 127),
                     out.codes + 32 * j + 8 * k);
    }
  }
  static void decode(const std::uint8_t* block, float* out) {
    decode_unpacked<IQ2_XXS>(block, out);
  }

  static void encode(const float* in, std::uint8_t* block) {
    const float unit = encode_factor<15>(in, kUnit, kTop, block);
    for (int j = 0; j < 8; ++j, in += 32) {
      const int scale = odd_scale_code<15>(in, 32, unit, kTop);
      std::uint32_t word = static_cast<std::uint32_t>(scale) << 28;
      for (int k = 0; k < 4; ++k) {
        const auto v = split_even_signs(in + 8 * k, unit * static_cast<float>(2 * scale + 1));
        block[kCodes + 8 * j + k] =
            static_cast<std::uint8_t>(nearest_point(kIq2XxsBook<void>, v.magnitudes).index);
        word |= (v.signs & 127) << (7 * k);
      }
      store_u32(block + kCodes + 8 * j + 4, word);
    }
  }

 private:
  static constexpr float kUnit = 0.125f;
  static constexpr int kTop = 43;
};

}  // namespace strata
