// Q6_K: 256 elements in 16 sub-blocks of 16; 6-bit codes, a signed 8-bit scale per sub-block, an
// f16 factor: w = d * scale[j] * (code - 32).
#pragma once

#include "formats/k_scales.h"

namespace strata {

struct Q6_K {
  static constexpr FormatId kId = FormatId::Q6_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 210;
  static constexpr std::array kFields = {Field{128, 4}, Field{64, 4}, Field{16, 1}, Field{2, 2}};
  using Activation = Q8Block256;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block + kFactor));
    for (int first = 0; first < 256; first += 32) {
      const Place at = place_of(first);
      for (int i = 0; i < 32; ++i) {
        const auto scale = static_cast<std::int8_t>(block[kScales + (first + i) / 16]);
        const int low = (block[at.low + i] >> at.low_shift) & 0xf;
        const int high = (block[kHigh + at.high + i] >> at.high_shift) & 3;
        out[first + i] =
            d * static_cast<float>(scale) * static_cast<float>((low | (high << 4)) - 32);
      }
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    int scales[16], codes[256];
    std::fill(block, block + kBytes, std::uint8_t{0});
    encode_signed_scales<32, 127>(in, block + kFactor, scales, codes);
    for (int j = 0; j < 16; ++j) block[kScales + j] = static_cast<std::uint8_t>(scales[j]);
    for (int i = 0; i < 256; ++i) {
      const Place at = place_of(i);
      set_bits(block[at.low], (codes[i] & 0xf) << at.low_shift);
      set_bits(block[kHigh + at.high], (codes[i] >> 4) << at.high_shift);
    }
  }

  static constexpr int kPart = 16;
  static constexpr int kTopCode = 63;
  static constexpr Offset kOffset = Offset::kScaled;
  static constexpr int kZeroCode = 32;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    const int half = c / 32, quarter = c / 8 % 4;
    const auto low = V::load_bytes(w, chunk_bytes(half * 16 + quarter % 2 * 8 + c % 8));
    const auto high = V::load_bytes(w, in_group(kHigh) + chunk_bytes(half * 8 + c % 8));
    return V::or_bytes(quarter < 2 ? V::low_nibbles(low) : V::high_nibbles(low),
                       V::bit_field(high, 2 * quarter, 3, 4));
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 scale(typename V::Weights w, int part) {
    return V::load_s8_i32(w, in_group(kScales) + lane_bytes(part));
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w) {
    return V::load_f16(w, in_group(kFactor));
  }

 private:
  // Offsets of the fields; the codes' low four bits come first.
  static constexpr int kHigh = 128;
  static constexpr int kScales = 192;
  static constexpr int kFactor = 208;

  // Where an element's bits lie: a half of 128 elements has four quarters of 32. Quarters 0 and 2
  // share 32 low bytes, 1 and 3 the next 32; all four share 32 bytes of high bits.
  struct Place {
    int low, low_shift;
    int high, high_shift;
  };
  static Place place_of(int i) {
    const int half = i / 128, quarter = i / 32 % 4, at = i % 32;
    return {half * 64 + (quarter % 2) * 32 + at, (quarter / 2) * 4, half * 32 + at, quarter * 2};
  }
  static void set_bits(std::uint8_t& byte, int bits) {
    byte = static_cast<std::uint8_t>(byte | bits);
  }
};

}  // namespace strata
