// The scales of the K formats. Q4_K and Q5_K share scales and minima, eight 6-bit pairs packed into
// 12 bytes behind two f16 factors; encoding serves the other K formats too.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

struct KScale {
  int scale;
  int minimum;
};

// Pairs 0..3 lie in the low six bits of bytes j and j + 4; pairs 4..7 have their low four bits in
// the two halves of byte j + 4 and their high two bits on top of bytes j - 4 and j.
inline KScale k_scale(const std::uint8_t* packed, int j) {
  if (j < 4) return {packed[j] & 63, packed[j + 4] & 63};
  return {(packed[j + 4] & 0xf) | ((packed[j - 4] >> 6) << 4),
          (packed[j + 4] >> 4) | ((packed[j] >> 6) << 4)};
}

inline void store_k_scale(std::uint8_t* packed, int j, KScale s) {
  if (j < 4) {
    packed[j] = static_cast<std::uint8_t>((packed[j] & 0xc0) | s.scale);
    packed[j + 4] = static_cast<std::uint8_t>((packed[j + 4] & 0xc0) | s.minimum);
    return;
  }
  packed[j + 4] = static_cast<std::uint8_t>((s.scale & 0xf) | ((s.minimum & 0xf) << 4));
  packed[j - 4] = static_cast<std::uint8_t>((packed[j - 4] & 0x3f) | ((s.scale >> 4) << 6));
  packed[j] = static_cast<std::uint8_t>((packed[j] & 0x3f) | ((s.minimum >> 4) << 6));
}

// Writes two f16 factors to `factors`, the codes, 0..kTop, to `codes`, and hands the scale and
// minimum, 0..kScaleTop, of each of kParts equal parts of 256 elements to store(part, KScale). Each
// part spans [min(0, smallest), largest]. With A the block's largest magnitude, the error is at
// most A * (1 / kTop + 1 / kScaleTop + 1 / (2 kScaleTop)), plus what rounding the factors moves.
template <int kTop, int kParts, int kScaleTop, class Store>
void encode_scales_and_minima(const float* in, std::uint8_t* factors, std::uint8_t* codes,
                              const Store& store) {
  constexpr int kPart = 256 / kParts;
  float scales[kParts], minima[kParts], top_scale = 0, top_minimum = 0;
  for (int j = 0; j < kParts; ++j) {
    const auto [low, high] = std::minmax_element(in + kPart * j, in + kPart * (j + 1));
    minima[j] = std::max(0.0f, -*low);
    scales[j] = std::max(0.0f, *high + minima[j]) / static_cast<float>(kTop);
    top_scale = std::max(top_scale, scales[j]);
    top_minimum = std::max(top_minimum, minima[j]);
  }
  store_u16(factors, f32_to_f16(top_scale / static_cast<float>(kScaleTop)));
  store_u16(factors + 2, f32_to_f16(top_minimum / static_cast<float>(kScaleTop)));
  const float d = f16_to_f32(load_u16(factors));
  const float dmin = f16_to_f32(load_u16(factors + 2));
  for (int j = 0; j < kParts; ++j) {
    const KScale s = {d > 0 ? to_code(scales[j] / d, kScaleTop) : 0,
                      dmin > 0 ? to_code(minima[j] / dmin, kScaleTop) : 0};
    store(j, s);
    const float scale = d * static_cast<float>(s.scale);
    const float minimum = dmin * static_cast<float>(s.minimum);
    for (int i = kPart * j; i < kPart * (j + 1); ++i)
      codes[i] =
          static_cast<std::uint8_t>(scale > 0 ? to_code((in[i] + minimum) / scale, kTop) : 0);
  }
}

// The factors and scales of Q4_K and Q5_K go to block[0..16).
template <int kTop>
void encode_k_scales(const float* in, std::uint8_t* block, std::uint8_t* codes) {
  std::fill(block, block + 16, std::uint8_t{0});
  encode_scales_and_minima<kTop, 8, 63>(in, block, codes,
                                        [=](int j, KScale s) { store_k_scale(block + 4, j, s); });
}

// Writes an f16 factor and returns it, 16 signed scales up to kScaleTop to `scales`, and the codes,
// 0..2 kHalf - 1, for w = factor * scale * (code - kHalf). Each part's value of largest magnitude
// gets code 0, whatever its sign. With the block's largest magnitude, the error is at most
// largest * (1 / kHalf + 1 / (2 kScaleTop)), plus what rounding the factor to f16 moves.
template <int kHalf, int kScaleTop>
void encode_signed_scales(const float* in, std::uint8_t* factor, int* scales, int* codes) {
  float exact[16], top = 0;
  for (int j = 0; j < 16; ++j) {
    exact[j] = extreme_value(in + 16 * j, 16) / static_cast<float>(-kHalf);
    top = std::max(top, std::fabs(exact[j]));
  }
  store_u16(factor, f32_to_f16(top / static_cast<float>(kScaleTop)));
  const float d = f16_to_f32(load_u16(factor));
  for (int i = 0; i < 256; ++i) {
    const int scale = d > 0 ? to_signed_code(exact[i / 16] / d, kScaleTop) : 0;
    scales[i / 16] = scale;
    codes[i] = scale != 0
                   ? to_code(in[i] / (d * static_cast<float>(scale)) + static_cast<float>(kHalf),
                             2 * kHalf - 1)
                   : kHalf;
  }
}

// The low four bits of 256 codes: each 32 bytes hold two sub-blocks, the first in the low halves.
inline void pack_k_nibbles(const std::uint8_t* codes, std::uint8_t* packed) {
  for (int i = 0; i < 128; ++i) {
    const int at = (i / 32) * 64 + i % 32;
    packed[i] = static_cast<std::uint8_t>((codes[at] & 0xf) | ((codes[at + 32] & 0xf) << 4));
  }
}

template <class V>
struct KScales {
  typename V::I32 scale;
  typename V::I32 minimum;
};

template <class V>
[[gnu::always_inline]] inline KScales<V> k_scales_of(typename V::Weights w, std::size_t packed,
                                                     int j) {
  const auto byte = [&](int i) { return V::load_u8_i32(w, packed + lane_bytes(i)); };
  if (j < 4) return {V::and_i32(byte(j), 63), V::and_i32(byte(j + 4), 63)};
  const auto both = byte(j + 4);
  return {V::or_i32(V::and_i32(both, 0xf), V::shl_i32(V::shr_i32(byte(j - 4), 6), 4)),
          V::or_i32(V::shr_i32(both, 4), V::shl_i32(V::shr_i32(byte(j), 6), 4))};
}

// How Q4_K and Q5_K, which begin alike, give their scales and minima to the kernels: two f16
// factors, then the packed scales.
struct KSubBlocks {
  static constexpr int kPart = 32;
  static constexpr Offset kOffset = Offset::kOwnFactor;

  template <class V>
  [[gnu::always_inline]] static typename V::I32 scale(typename V::Weights w, int part) {
    return k_scales_of<V>(w, in_group(4), part).scale;
  }
  template <class V>
  [[gnu::always_inline]] static typename V::I32 offset(typename V::Weights w, int part) {
    return k_scales_of<V>(w, in_group(4), part).minimum;
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w) {
    return V::load_f16(w, 0);
  }
  template <class V>
  [[gnu::always_inline]] static typename V::F32 offset_factor(typename V::Weights w) {
    return V::load_f16(w, in_group(2));
  }
};

}  // namespace strata
