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

// dot[r] = sum of code * q over a block of 4-bit codes. Eight pairs of products add up to
// at most 8 * 2 * 15 * 127 < 2^15.
template <class V, int R>
[[gnu::always_inline]] inline void dot_nibbles(const std::uint8_t* packed,
                                               const Q8Block32* const* a, typename V::I32* dot) {
  typename V::Dots sum[R];
  for (int r = 0; r < R; ++r) sum[r] = V::zero_dots();
  for (int c = 0; c < 4; ++c) {
    const auto bytes = V::load_bytes(packed + c * 32);
    const auto low = V::low_nibbles(bytes);
    const auto high = V::high_nibbles(bytes);
    for (int r = 0; r < R; ++r) {
      sum[r] = V::add_dots(sum[r], low, V::broadcast4(a[r]->q + 4 * c));
      sum[r] = V::add_dots(sum[r], high, V::broadcast4(a[r]->q + 16 + 4 * c));
    }
  }
  for (int r = 0; r < R; ++r) dot[r] = V::widen(sum[r]);
}

// Adds the products of chunk kChunk of a block of 5-bit codes; `words` are the rows' fifth bits.
template <class V, int R, int kChunk>
[[gnu::always_inline]] inline void add_five_bit_chunk(typename V::I32 words,
                                                      const std::uint8_t* packed,
                                                      const Q8Block32* const* a,
                                                      typename V::Dots* sum) {
  const auto bytes = V::load_bytes(packed + kChunk * 32);
  const auto low =
      V::or_bytes(V::low_nibbles(bytes), V::template expand_bits<4 * kChunk, 16>(words));
  const auto high =
      V::or_bytes(V::high_nibbles(bytes), V::template expand_bits<16 + 4 * kChunk, 16>(words));
  for (int r = 0; r < R; ++r) {
    sum[r] = V::add_dots(sum[r], low, V::broadcast4(a[r]->q + 4 * kChunk));
    sum[r] = V::add_dots(sum[r], high, V::broadcast4(a[r]->q + 16 + 4 * kChunk));
  }
}

// dot[r] = sum of code * q over a block of 5-bit codes. Four pairs of products add up to
// at most 4 * 2 * 31 * 127 < 2^15, so two chunks are gathered at a time.
template <class V, int R>
[[gnu::always_inline]] inline void dot_five_bits(const std::uint8_t* bits,
                                                 const std::uint8_t* packed,
                                                 const Q8Block32* const* a, typename V::I32* dot) {
  const auto words = V::load_i32(bits);
  typename V::Dots first[R], second[R];
  for (int r = 0; r < R; ++r) first[r] = second[r] = V::zero_dots();
  add_five_bit_chunk<V, R, 0>(words, packed, a, first);
  add_five_bit_chunk<V, R, 1>(words, packed, a, first);
  add_five_bit_chunk<V, R, 2>(words, packed, a, second);
  add_five_bit_chunk<V, R, 3>(words, packed, a, second);
  for (int r = 0; r < R; ++r) dot[r] = V::add_i32(V::widen(first[r]), V::widen(second[r]));
}

// acc[r] += offset * a.scale * sum of q
template <class V, int R>
[[gnu::always_inline]] inline void add_offset(typename V::F32 offset, const Q8Block32* const* a,
                                              typename V::F32* acc) {
  for (int r = 0; r < R; ++r) acc[r] = V::fma(offset, V::broadcast(a[r]->scaled_sum), acc[r]);
}

}  // namespace strata
