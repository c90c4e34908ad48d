// Q3_K: 256 elements in 16 sub-blocks of 16; 3-bit codes, a 6-bit scale per sub-block, an f16
// factor: w = d * (scale[j] - 32) * (code - 4).
#pragma once

#include "formats/k_scales.h"
#include "formats/two_bits.h"

namespace strata {

struct Q3_K {
  static constexpr FormatId kId = FormatId::Q3_K;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 110;
  static constexpr std::array kFields = {Field{32, 4}, Field{64, 4}, Field{12, 1}, Field{2, 2}};
  using Activation = Q8Block256;

  // Bit j of byte i is the third bit of element i of the j-th 32 elements. The scales' low four
  // bits are the halves of 8 bytes, scales 8..15 in the high ones; their high two bits follow in
  // 4 bytes, four scales a bit pair.
  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block + kFactor));
    for (int i = 0; i < 256; ++i) {
      const int j = i / 16;
      const int low = (block[kScales + j % 8] >> (j / 8 * 4)) & 0xf;
      const int high = (block[kScales + 8 + j % 4] >> (j / 4 * 2)) & 3;
      const int code = two_bits(block + kCodes, i) | ((block[i % 32] >> (i / 32)) & 1) << 2;
      out[i] = d * static_cast<float>((low | high << 4) - 32) * static_cast<float>(code - 4);
    }
  }

  static void encode(const float* in, std::uint8_t* block) {
    int scales[16], codes[256];
    std::fill(block, block + kBytes, std::uint8_t{0});
    encode_signed_scales<4, 31>(in, block + kFactor, scales, codes);
    const auto set_bits = [&](int at, int bits) {
      block[at] = static_cast<std::uint8_t>(block[at] | bits);
    };
    for (int j = 0; j < 16; ++j) {
      const int scale = scales[j] + 32;
      set_bits(kScales + j % 8, (scale & 0xf) << (j / 8 * 4));
      set_bits(kScales + 8 + j % 4, (scale >> 4) << (j / 4 * 2));
    }
    pack_two_bits(codes, block + kCodes);
    for (int i = 0; i < 256; ++i) set_bits(i % 32, (codes[i] >> 2) << (i / 32));
  }

  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R];
    for (int r = 0; r < R; ++r) total[r] = V::zero_i32();
    for (int side = 0; side < 2; ++side) {
      add_sub_block<V, R, 0>(w, side, a, total);
      add_sub_block<V, R, 1>(w, side, a, total);
      add_sub_block<V, R, 2>(w, side, a, total);
      add_sub_block<V, R, 3>(w, side, a, total);
      add_sub_block<V, R, 4>(w, side, a, total);
      add_sub_block<V, R, 5>(w, side, a, total);
      add_sub_block<V, R, 6>(w, side, a, total);
      add_sub_block<V, R, 7>(w, side, a, total);
    }
    add_scaled<V, R>(V::load_f16(w + in_group(kFactor)), a, total, acc);
  }

 private:
  static constexpr int kCodes = 32;
  static constexpr int kScales = 96;
  static constexpr int kFactor = 108;

  // The 16 elements on one side of the kPart-th 32. Four pairs of products add up to at most
  // 4 * 2 * 7 * 127 < 2^15. |sum((code - 4) q)| <= 4 * 127 * 16; times |scale| <= 32, sixteen of
  // them stay below 2^23.
  template <class V, int R, int kPart>
  [[gnu::always_inline]] static void add_sub_block(const std::uint8_t* w, int side,
                                                   const Activation* const* a,
                                                   typename V::I32* total) {
    const int j = kPart * 2 + side;
    typename V::Dots dot[R];
    for (int r = 0; r < R; ++r) dot[r] = V::zero_dots();
    for (int c = side * 4; c < side * 4 + 4; ++c) {
      const auto low = V::load_bytes(w + in_group(kCodes) + (kPart / 4 * 8 + c) * 32);
      const auto codes = V::or_bytes(V::template bit_field<kPart % 4 * 2, 3, 0>(low),
                                     V::template bit_field<kPart, 1, 2>(V::load_bytes(w + c * 32)));
      for (int r = 0; r < R; ++r)
        dot[r] = V::add_dots(dot[r], codes, V::broadcast4(a[r]->q + kPart * 32 + 4 * c));
    }
    const auto scale_bits = [&](int byte) {
      return V::load_u8_i32(w + in_group(kScales) + byte * kLanes);
    };
    const auto low = V::template and_i32<0xf>(
        V::template shr_i32<kPart / 4 * 4>(scale_bits(kPart % 4 * 2 + side)));
    const auto high = V::template and_i32<3>(
        V::template shr_i32<kPart / 2 * 2>(scale_bits(8 + kPart % 2 * 2 + side)));
    const auto scale =
        V::sub_i32(V::or_i32(low, V::template shl_i32<4>(high)), V::broadcast_i32(32));
    for (int r = 0; r < R; ++r) {
      const auto centred = V::sub_i32(V::widen(dot[r]), V::broadcast_i32(4 * a[r]->sums[j]));
      total[r] = V::add_i32(total[r], V::mul_i32(scale, centred));
    }
  }
};

}  // namespace strata
