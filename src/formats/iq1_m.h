// IQ1_M: 256 elements in 16 sub-blocks of 16; ternary points of eight elements, each with a shift
// of an eighth up or down, a 3-bit scale per sub-block, an f16 factor: w = d * (2 scale[j] + 1) *
// (value + shift).
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ1_M {
  static constexpr FormatId kId = FormatId::IQ1_M;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 56;
  static constexpr std::array kFields = {Field{56, 56}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 0, kCodeBytes = 56;

  // The low eight bits of 32 indices, their high three bits with the shift above, two in a byte,
  // and four words of four scales, whose top four bits are the factor's.
  template <class V>
  static void unpack(const std::uint8_t*, const std::uint8_t* codes, Unpacked& out) {
    unsigned factor = 0;
    for (int i = 0; i < 4; ++i) {
      const unsigned word = load_u16(codes + kScales + 2 * i);
      factor |= (word >> 12) << (4 * i);
      for (int j = 0; j < 4; ++j)
        out.scales[4 * i + j] = static_cast<std::int8_t>(2 * ((word >> (3 * j)) & 7) + 1);
    }
    out.factor = f16_to_f32(static_cast<std::uint16_t>(factor)) * kUnit;
    for (int k = 0; k < 32; ++k) {
      const unsigned high = codes[kHigh + k / 2] >> (k % 2 * 4);
      put_shifted<V>(codes[k] | (high & 7) << 8, (high & 8) != 0, out.codes + 8 * k);
    }
  }
  static void decode(const std::uint8_t* block, float* out) { decode_unpacked<IQ1_M>(block, out); }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t factor[2];
    const float unit = encode_factor<7>(in, kUnit, kTop, factor);
    unsigned words[4];
    for (int i = 0; i < 4; ++i) words[i] = ((load_u16(factor) >> (4 * i)) & 0xfu) << 12;
    for (int k = 0; k < 32; ++k) {
      const int j = k / 2;
      const int scale = odd_scale_code<7>(in + 16 * j, 16, unit, kTop);
      words[j / 4] |= static_cast<unsigned>(scale) << (j % 4 * 3);
      const float step = unit * static_cast<float>(2 * scale + 1);
      const NearestPoint up = nearest_shifted(in + 8 * k, step, false);
      const NearestPoint down = nearest_shifted(in + 8 * k, step, true);
      const int index = down.error < up.error ? down.index | 8 << 8 : up.index;
      block[k] = static_cast<std::uint8_t>(index & 0xff);
      std::uint8_t& pair = block[kHigh + k / 2];
      pair = static_cast<std::uint8_t>(k % 2 == 0 ? index >> 8 : pair | (index >> 8) << 4);
    }
    for (int i = 0; i < 4; ++i)
      store_u16(block + kScales + 2 * i, static_cast<std::uint16_t>(words[i]));
  }

 private:
  static constexpr int kHigh = 32, kScales = 48;
  static constexpr float kUnit = 0.125f;
  static constexpr int kTop = 16;  // most of a sub-block lies well below its largest magnitude
};

}  // namespace strata
