// IQ3_XXS: 256 elements in 8 sub-blocks of 32; points of four elements, seven sign bits for each
// two points, a 4-bit scale per sub-block, an f16 factor: w = d / 4 * (2 scale[j] + 1) * sign *
// value.
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ3_XXS {
  static constexpr FormatId kId = FormatId::IQ3_XXS;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 98;
  static constexpr std::array kFields = {Field{2, 2}, Field{96, 96}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 2, kCodeBytes = 96;

  // 64 indices, then a word per sub-block: four times seven signs and the scale.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor)) * kUnit;
    for (int j = 0; j < 8; ++j) {
      const std::uint32_t word = load_u32(codes + kWords + 4 * j);
      out.scales[2 * j] = out.scales[2 * j + 1] = static_cast<std::int8_t>(2 * (word >> 28) + 1);
      for (int k = 0; k < 4; ++k) {
        const std::uint8_t* pair = codes + 8 * j + 2 * k;
        const unsigned signs = even_signs((word >> (7 * k)) & 127);
        std::int8_t* eight = out.codes + 32 * j + 8 * k;
        put_point<V>(kIq3XxsBook<V>.points[pair[0]], signs, eight);
        put_point<V>(kIq3XxsBook<V>.points[pair[1]], signs >> 4, eight + 4);
      }
    }
  }
  static void decode(const std::uint8_t* block, float* out) {
    decode_unpacked<IQ3_XXS>(block, out);
  }

  static void encode(const float* in, std::uint8_t* block) {
    const float unit = encode_factor<15>(in, kUnit, kTop, block);
    std::uint8_t* codes = block + kCodes;
    for (int j = 0; j < 8; ++j, in += 32) {
      const int scale = odd_scale_code<15>(in, 32, unit, kTop);
      std::uint32_t word = static_cast<std::uint32_t>(scale) << 28;
      for (int k = 0; k < 4; ++k) {
        const auto v = split_even_signs(in + 8 * k, unit * static_cast<float>(2 * scale + 1));
        for (int side = 0; side < 2; ++side)
          codes[8 * j + 2 * k + side] = static_cast<std::uint8_t>(
              nearest_point(kIq3XxsBook<void>, v.magnitudes + 4 * side).index);
        word |= (v.signs & 127) << (7 * k);
      }
      store_u32(codes + kWords + 4 * j, word);
    }
  }

 private:
  static constexpr int kWords = 64;  // within the codes
  static constexpr float kUnit = 0.25f;
  static constexpr int kTop = 62;
};

}  // namespace strata
