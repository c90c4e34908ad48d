// IQ1_S: 256 elements in 8 sub-blocks of 32; ternary points of eight elements, a 3-bit scale and a
// shift of an eighth up or down per sub-block, an f16 factor:
// w = d * (2 scale[j] + 1) * (value + shift[j]).
#pragma once

#include "formats/codebook.h"

namespace strata {

struct IQ1_S {
  static constexpr FormatId kId = FormatId::IQ1_S;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 50;
  static constexpr std::array kFields = {Field{2, 2}, Field{48, 48}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 0, kCodes = 2, kCodeBytes = 48;

  // The low eight bits of 32 indices, then a word per sub-block: four times their high three bits,
  // the scale, and whether the shift is down.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor)) * kUnit;
    for (int j = 0; j < 8; ++j) {
      const unsigned word = load_u16(codes + kWords + 2 * j);
      out.scales[2 * j] = out.scales[2 * j + 1] =
          static_cast<std::int8_t>(2 * ((word >> 12) & 7) + 1);
      for (int k = 0; k < 4; ++k)
        put_shifted<V>(codes[4 * j + k] | ((word >> (3 * k)) & 7) << 8, (word >> 15) != 0,
                       out.codes + 32 * j + 8 * k);
    }
  }
  static void decode(const std::uint8_t* block, float* out) { decode_unpacked<IQ1_S>(block, out); }

  static void encode(const float* in, std::uint8_t* block) {
    const float unit = encode_factor<7>(in, kUnit, kTop, block);
    for (int j = 0; j < 8; ++j, in += 32) {
      const int scale = odd_scale_code<7>(in, 32, unit, kTop);
      const float step = unit * static_cast<float>(2 * scale + 1);
      NearestPoint best[2][4];
      float errors[2] = {};
      for (int down = 0; down < 2; ++down)
        for (int k = 0; k < 4; ++k) {
          best[down][k] = nearest_shifted(in + 8 * k, step, down != 0);
          errors[down] += best[down][k].error;
        }
      const int down = errors[1] < errors[0] ? 1 : 0;
      int word = scale << 12 | down << 15;
      for (int k = 0; k < 4; ++k) {
        block[kCodes + 4 * j + k] = static_cast<std::uint8_t>(best[down][k].index & 0xff);
        word |= (best[down][k].index >> 8) << (3 * k);
      }
      store_u16(block + kCodes + kWords + 2 * j, static_cast<std::uint16_t>(word));
    }
  }

 private:
  static constexpr int kWords = 32;  // within the codes
  static constexpr float kUnit = 0.125f;
  static constexpr int kTop = 16;  // most of a sub-block lies well below its largest magnitude
};

}  // namespace strata
