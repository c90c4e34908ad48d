// Q5_K: 256 elements in 8 sub-blocks of 32; 5-bit codes, 6-bit scales and minima per sub-block,
// two f16 factors: w = d * scale[j] * code - dmin * minimum[j].
#pragma once

#include "formats/k_scales.h"

namespace strata {

struct Q5_K : KSubBlocks {
  static constexpr FormatId kId = FormatId::Q5_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 176;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 2}, Field{12, 1}, Field{32, 4},
                                         Field{128, 4}};
  using Activation = Q8Block256;

  // The low four bits lie as in Q4_K. Bit j of byte 16 + i is the fifth bit of element i of
  // sub-block j.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block));
    const float dmin = f16_to_f32(load_u16(block + 2));
    for (int j = 0; j < 8; ++j) {
      const KScale s = k_scale(block + 4, j);
      const float scale = d * static_cast<float>(s.scale);
      const float minimum = dmin * static_cast<float>(s.minimum);
      const std::uint8_t* codes = block + 48 + (j / 2) * 32;
      for (int i = 0; i < 32; ++i) {
        const int low = (j % 2) != 0 ? codes[i] >> 4 : codes[i] & 0xf;
        const int code = low + 16 * ((block[16 + i] >> j) & 1);
        out[j * 32 + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[256];
    encode_k_scales<31>(in, block, codes);
    pack_k_nibbles(codes, block + 48);
    for (int i = 0; i < 32; ++i) {
      int bits = 0;
      for (int j = 0; j < 8; ++j) bits |= (codes[j * 32 + i] >> 4) << j;
      block[16 + i] = static_cast<std::uint8_t>(bits);
    }
  }

  static constexpr int kTopCode = 31;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    const auto bytes = V::load_bytes(w, in_group(48) + chunk_bytes(c / 16 * 8 + c % 8));
    const auto fifth = V::load_bytes(w, in_group(16) + chunk_bytes(c % 8));
    return V::or_bytes(c / 8 % 2 == 0 ? V::low_nibbles(bytes) : V::high_nibbles(bytes),
                       V::bit_field(fifth, c / 8, 1, 4));
  }
};

}  // namespace strata
