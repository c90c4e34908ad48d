// What the formats with one scale per 32 elements share: 4- and 5-bit codes, and the fused
// multiply-adds that end a block.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

// Byte i of `packed` holds the low four bits of code i in its low half, of code i + 16 in its high.
inline int nibble(const std::uint8_t* packed, int i) {
  return i < 16 ? packed[i] & 0xf : packed[i - 16] >> 4;
}
inline void pack_nibbles(const std::uint8_t* codes, std::uint8_t* packed) {
  for (int i = 0; i < 16; ++i)
    packed[i] = static_cast<std::uint8_t>((codes[i] & 0xf) | ((codes[i + 16] & 0xf) << 4));
}

// Bit i of the little-endian word at `bits` is the fifth bit of code i.
inline int fifth_bit(const std::uint8_t* bits, int i) { return (bits[i / 8] >> (i % 8)) & 1; }
inline void pack_fifth_bits(const std::uint8_t* codes, std::uint8_t* bits) {
  std::fill(bits, bits + 4, std::uint8_t{0});
  for (int i = 0; i < 32; ++i)
    bits[i / 8] = static_cast<std::uint8_t>(bits[i / 8] | ((codes[i] >> 4) << (i % 8)));
}

// Writes the f16 scale to block[0..2) and 32 codes in [0, 2 kHalf) for w = scale * (code - kHalf).
// The value of largest magnitude gets code 0, whatever its sign. The error is at most
// largest / kHalf, plus what rounding the scale to f16 moves.
template <int kHalf>
void encode_symmetric(const float* in, std::uint8_t* block, std::uint8_t* codes) {
  store_u16(block, f32_to_f16(extreme_value(in, 32) / static_cast<float>(-kHalf)));
  const float scale = f16_to_f32(load_u16(block));
  const float inverse = scale != 0 ? 1.0f / scale : 0.0f;
  for (int i = 0; i < 32; ++i)
    codes[i] = static_cast<std::uint8_t>(
        to_code(in[i] * inverse + static_cast<float>(kHalf), 2 * kHalf - 1));
}

// Writes the f16 scale and minimum to block[0..4) and 32 codes in [0, kTop] for
// w = scale * code + minimum. The error is at most (highest - lowest) / (2 kTop), plus what
// rounding the scale and the minimum to f16 moves.
template <int kTop>
void encode_affine(const float* in, std::uint8_t* block, std::uint8_t* codes) {
  const auto [low, high] = std::minmax_element(in, in + 32);
  store_u16(block + 2, f32_to_f16(*low));
  const float minimum = f16_to_f32(load_u16(block + 2));
  store_u16(block, f32_to_f16(std::max(0.0f, *high - minimum) / static_cast<float>(kTop)));
  const float scale = f16_to_f32(load_u16(block));
  const float inverse = scale > 0 ? 1.0f / scale : 0.0f;
  for (int i = 0; i < 32; ++i)
    codes[i] = static_cast<std::uint8_t>(to_code((in[i] - minimum) * inverse, kTop));
}

// Chunk c of a block of 5-bit codes, whose words of fifth bits and packed low bits start there.
template <class V>
[[gnu::always_inline]] inline typename V::Bytes five_bit_codes(typename V::Weights w,
                                                               std::size_t bits, std::size_t packed,
                                                               int c) {
  const auto bytes = V::load_bytes(w, packed + chunk_bytes(c % 4));
  return V::or_bytes(c < 4 ? V::low_nibbles(bytes) : V::high_nibbles(bytes),
                     V::expand_bits(V::load_i32(w, bits), 4 * c, 16));
}

}  // namespace strata
