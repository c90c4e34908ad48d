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

  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R];
    for (int r = 0; r < R; ++r) total[r] = V::zero_i32();
    for (int half = 0; half < 2; ++half)
      for (int side = 0; side < 2; ++side) {
        add_sub_block<V, R, 0>(w, half, side, a, total);
        add_sub_block<V, R, 1>(w, half, side, a, total);
        add_sub_block<V, R, 2>(w, half, side, a, total);
        add_sub_block<V, R, 3>(w, half, side, a, total);
      }
    add_scaled<V, R>(V::load_f16(w + in_group(kFactor)), a, total, acc);
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

  // The 16 elements on one side of a quarter. Two pairs of products add up to at most
  // 2 * 2 * 63 * 127 < 2^15, so two chunks are gathered at a time. |sum((code - 32) q)| <=
  // 32 * 127 * 16; times |scale| <= 128, sixteen of them stay below 2^27.
  template <class V, int R, int kQuarter>
  [[gnu::always_inline]] static void add_sub_block(const std::uint8_t* w, int half, int side,
                                                   const Activation* const* a,
                                                   typename V::I32* total) {
    const int first = half * 128 + kQuarter * 32 + side * 16;
    typename V::I32 dot[R];
    for (int r = 0; r < R; ++r) dot[r] = V::broadcast_i32(-32 * a[r]->sums[first / 16]);
    for (int c = 0; c < 4; c += 2) {
      const std::uint8_t* low = w + (half * 16 + (kQuarter % 2) * 8 + side * 4 + c) * 32;
      const std::uint8_t* high = w + in_group(kHigh) + (half * 8 + side * 4 + c) * 32;
      const auto codes = codes_of<V, kQuarter>(low, high);
      const auto more = codes_of<V, kQuarter>(low + 32, high + 32);
      for (int r = 0; r < R; ++r) {
        const std::int8_t* q = a[r]->q + first + 4 * c;
        const auto sum = V::add_dots(V::zero_dots(), codes, V::broadcast4(q));
        dot[r] = V::add_i32(dot[r], V::widen(V::add_dots(sum, more, V::broadcast4(q + 4))));
      }
    }
    const auto scale = V::load_s8_i32(w + in_group(kScales) + (first / 16) * kLanes);
    for (int r = 0; r < R; ++r) total[r] = V::add_i32(total[r], V::mul_i32(scale, dot[r]));
  }

  template <class V, int kQuarter>
  [[gnu::always_inline]] static typename V::Bytes codes_of(const std::uint8_t* low,
                                                           const std::uint8_t* high) {
    const auto bytes = V::load_bytes(low);
    const auto nibbles = kQuarter < 2 ? V::low_nibbles(bytes) : V::high_nibbles(bytes);
    return V::or_bytes(nibbles, V::template bit_field<2 * kQuarter, 3, 4>(V::load_bytes(high)));
  }
};

}  // namespace strata
