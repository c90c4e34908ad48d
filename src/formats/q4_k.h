// Q4_K: 256 elements in 8 sub-blocks of 32; 4-bit codes, 6-bit scales and minima per sub-block,
// two f16 factors: w = d * scale[j] * code - dmin * minimum[j].
#pragma once

#include "formats/k_scales.h"

namespace strata {

struct Q4_K : KSubBlocks {
  static constexpr FormatId kId = FormatId::Q4_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 144;
  static constexpr std::array kFields = {Field{2, 2}, Field{2, 2}, Field{12, 1}, Field{128, 4}};
  using Activation = Q8Block256;

  // Each 32 code bytes hold two sub-blocks: the first in the low halves, the second in the high.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block));
    const float dmin = f16_to_f32(load_u16(block + 2));
    for (int j = 0; j < 8; ++j) {
      const KScale s = k_scale(block + 4, j);
      const float scale = d * static_cast<float>(s.scale);
      const float minimum = dmin * static_cast<float>(s.minimum);
      const std::uint8_t* codes = block + 16 + (j / 2) * 32;
      for (int i = 0; i < 32; ++i) {
        const int code = (j % 2) != 0 ? codes[i] >> 4 : codes[i] & 0xf;
        out[j * 32 + i] = scale * static_cast<float>(code) - minimum;
      }
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    std::uint8_t codes[256];
    encode_k_scales<15>(in, block, codes);
    pack_k_nibbles(codes, block + 16);
  }

  static constexpr int kTopCode = 15;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    const auto bytes = V::load_bytes(w, in_group(16) + chunk_bytes(c / 16 * 8 + c % 8));
    return c / 8 % 2 == 0 ? V::low_nibbles(bytes) : V::high_nibbles(bytes);
  }
};

}  // namespace strata
