// The vocabulary kernels are written in, spelled out lane by lane: the reference for every other.
// A vocabulary names eight lanes of f32 and i32 and 32 bytes; each operation is exact or rounded
// once (nearest even), so that any two vocabularies give the same bits. One for matrix products
// alone may have more lanes, and cells of as many weight rows.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"

namespace strata {
namespace {

struct Scalar {
  // The vocabulary for lanes that never meet, which may be more than eight.
  using Wide = Scalar;
  static constexpr int kWidth = 8;

  struct F32 {
    float v[8];
  };
  struct I32 {
    std::int32_t v[8];
  };
  struct Bytes {
    std::uint8_t v[32];
  };

  using Dots = I32;
  using Weights = const std::uint8_t*;  // one block of eight interleaved rows

  static constexpr bool kUnrolled = false;  // loops are spelled out for their constants
  static constexpr bool kRaised = false;    // dot4_s8s8 wants activations plus 128
  static constexpr bool kPanels = false;    // many rows of activations share unpacked weights
  static constexpr int kStreamRows = 0;     // so few rows take another vocabulary, Narrow
  static constexpr int kFewRows = 1;        // rows of activations up to which they do not
  static constexpr int kTileRows = 1;       // rows of activations and cells of weight rows that a
  static constexpr int kTileCells = 1;      // kernel keeps in registers
  // Chunks whose products Dots can gather for codes of 0..top.
  static constexpr int dot_depth(int /*top*/) { return 64; }

  template <class F>
  static F32 each(F f) {
    F32 out;
    for (int i = 0; i < 8; ++i) out.v[i] = f(i);
    return out;
  }
  template <class F>
  static I32 each_i32(F f) {
    I32 out;
    for (int i = 0; i < 8; ++i) out.v[i] = f(i);
    return out;
  }
  template <class F>
  static Bytes each_byte(F f) {
    Bytes out;
    for (int i = 0; i < 32; ++i) out.v[i] = static_cast<std::uint8_t>(f(i));
    return out;
  }

  // f32 lanes
  static F32 zero() { return broadcast(0.0f); }
  static F32 broadcast(float x) {
    return each([=](int) { return x; });
  }
  static F32 load(const float* p) {
    return each([=](int i) { return p[i]; });
  }
  static void store(float* p, F32 a) { std::memcpy(p, a.v, sizeof a.v); }
  static F32 add(F32 a, F32 b) {
    return each([&](int i) { return a.v[i] + b.v[i]; });
  }
  static F32 sub(F32 a, F32 b) {
    return each([&](int i) { return a.v[i] - b.v[i]; });
  }
  static F32 mul(F32 a, F32 b) {
    return each([&](int i) { return a.v[i] * b.v[i]; });
  }
  static F32 div(F32 a, F32 b) {
    return each([&](int i) { return a.v[i] / b.v[i]; });
  }
  // a * b + c, rounded once
  static F32 fma(F32 a, F32 b, F32 c) {
    return each([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
  }
  // a > b ? a : b, so b where either is not a number
  static F32 max(F32 a, F32 b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F32 min(F32 a, F32 b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static F32 load_f16(const void* p) {
    std::uint16_t h[8];
    std::memcpy(h, p, sizeof h);
    return each([&](int i) { return f16(h[i]); });
  }
  static F32 load_bf16(const void* p) {
    std::uint16_t h[8];
    std::memcpy(h, p, sizeof h);
    return each([&](int i) { return __builtin_bit_cast(float, std::uint32_t{h[i]} << 16); });
  }
  static void store_f16(void* p, F32 a) {
    std::uint16_t h[8];
    for (int i = 0; i < 8; ++i) h[i] = to_f16(a.v[i]);
    std::memcpy(p, h, sizeof h);
  }
  static F32 to_f32(I32 a) {
    return each([&](int i) { return static_cast<float>(a.v[i]); });
  }
  static I32 bits(F32 a) {
    return each_i32([&](int i) { return __builtin_bit_cast(std::int32_t, a.v[i]); });
  }
  static F32 from_bits(I32 a) {
    return each([&](int i) { return __builtin_bit_cast(float, a.v[i]); });
  }
  // Lanes first..last-1 from a, the others from b.
  static F32 select_range(int first, int last, F32 a, F32 b) {
    return each([&](int i) { return i >= first && i < last ? a.v[i] : b.v[i]; });
  }
  // p[0], p[0], p[1], p[1], ... p[3], p[3]
  static F32 load_twice(const float* p) {
    return each([=](int i) { return p[i / 2]; });
  }
  // Lanes 1, 0, 3, 2, ... 7, 6.
  static F32 swap_pairs(F32 a) {
    return each([&](int i) { return a.v[i ^ 1]; });
  }
  // Lane i is the sum of a[i]'s lanes, added as sum_lanes does.
  static F32 sums_of_lanes(const F32 (&a)[8]) {
    return each([&](int i) {
      const float* v = a[i].v;
      return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
    });
  }

  // i32 lanes, wrapping
  static I32 zero_i32() { return broadcast_i32(0); }
  static I32 broadcast_i32(std::int32_t x) {
    return each_i32([=](int) { return x; });
  }
  static I32 load_i32(const void* p) {
    I32 out;
    std::memcpy(out.v, p, sizeof out.v);
    return out;
  }
  static void store_i32(std::int32_t* p, I32 a) { std::memcpy(p, a.v, sizeof a.v); }
  static I32 add_i32(I32 a, I32 b) {
    return wrap(a, b, [](std::uint32_t x, std::uint32_t y) { return x + y; });
  }
  static I32 sub_i32(I32 a, I32 b) {
    return wrap(a, b, [](std::uint32_t x, std::uint32_t y) { return x - y; });
  }
  static I32 mul_i32(I32 a, I32 b) {
    return wrap(a, b, [](std::uint32_t x, std::uint32_t y) { return x * y; });
  }
  static I32 or_i32(I32 a, I32 b) {
    return wrap(a, b, [](std::uint32_t x, std::uint32_t y) { return x | y; });
  }
  static I32 max_i32(I32 a, I32 b) {
    return each_i32([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static I32 and_i32(I32 a, std::int32_t mask) {
    return each_i32([&](int i) { return a.v[i] & mask; });
  }
  static I32 shr_i32(I32 a, int bits) {  // logical
    return each_i32([&](int i) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) >> bits);
    });
  }
  static I32 shl_i32(I32 a, int bits) {
    return each_i32([&](int i) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) << bits);
    });
  }
  static I32 load_u8_i32(Weights w, std::size_t offset) {
    const std::uint8_t* p = w + offset;
    return each_i32([=](int i) { return p[i]; });
  }
  static I32 load_s8_i32(Weights w, std::size_t offset) {
    const std::uint8_t* p = w + offset;
    return each_i32([=](int i) { return static_cast<std::int8_t>(p[i]); });
  }
  // Stores each lane's low byte.
  static void store_low_bytes(std::int8_t* p, I32 a) {
    for (int i = 0; i < 8; ++i) p[i] = static_cast<std::int8_t>(a.v[i] & 0xff);
  }

  // Of the weights: the same offset in each group of eight rows.
  static Weights weights(const std::uint8_t* const* groups) { return groups[0]; }
  static Weights advance(Weights w, std::size_t bytes) { return w + bytes; }
  static const std::uint8_t* group(Weights w, int /*index*/) { return w; }
  static I32 load_i32(Weights w, std::size_t offset) { return load_i32(w + offset); }
  static F32 load_f16(Weights w, std::size_t offset) { return load_f16(w + offset); }
  static F32 load_bf16(Weights w, std::size_t offset) { return load_bf16(w + offset); }
  static Bytes load_bytes(Weights w, std::size_t offset) { return load_bytes(w + offset); }

  // 32 bytes: lane i owns bytes 4 i .. 4 i + 3
  static Bytes load_bytes(const void* p) {
    Bytes out;
    std::memcpy(out.v, p, 32);
    return out;
  }
  static void store_bytes(void* p, Bytes a) { std::memcpy(p, a.v, 32); }
  // The bytes at p, which are chunk `chunk` of a row, in every lane as the operand of products.
  // Vocabularies may keep them in another form than Bytes, and read the four chunks around them.
  static Bytes broadcast4(const std::int8_t* p, int /*chunk*/) {
    return each_byte([=](int i) { return p[i % 4]; });
  }
  static Bytes broadcast_byte(std::uint8_t x) {
    return each_byte([=](int) { return x; });
  }
  static Bytes low_nibbles(Bytes a) {
    return each_byte([&](int i) { return a.v[i] & 0xf; });
  }
  static Bytes high_nibbles(Bytes a) {
    return each_byte([&](int i) { return a.v[i] >> 4; });
  }
  static Bytes or_bytes(Bytes a, Bytes b) {
    return each_byte([&](int i) { return a.v[i] | b.v[i]; });
  }
  // values[index] for each byte of `index`, all below 16
  static Bytes lookup(const std::int8_t (&values)[16], Bytes index) {
    return each_byte([&](int i) { return static_cast<std::uint8_t>(values[index.v[i]]); });
  }
  // (byte >> shift) & mask, then << left
  static Bytes bit_field(Bytes a, int shift, int mask, int left) {
    return each_byte([&](int i) { return ((a.v[i] >> shift) & mask) << left; });
  }
  // Byte j of lane i is `value` where bit (first + j) of word i is set, else 0. `first` is a
  // multiple of four.
  static Bytes expand_bits(I32 words, int first, int value) {
    return each_byte([&](int i) {
      return (static_cast<std::uint32_t>(words.v[i / 4]) >> (first + i % 4)) & 1u ? value : 0;
    });
  }
  // acc + the four products of each lane; exact while u <= 127, or one operand pair's sum fits 16
  // bits.
  static I32 dot4_u8s8(I32 acc, Bytes u, Bytes s) {
    return each_i32([&](int i) {
      std::int32_t sum = acc.v[i];
      for (int j = 4 * i; j < 4 * i + 4; ++j) sum += u.v[j] * static_cast<std::int8_t>(s.v[j]);
      return sum;
    });
  }
  // Dots gather products of u and s cheaply. They are exact while, for each two neighbouring bytes
  // of a lane, the products added up stay below 2^15; a vocabulary may then keep pairs in 16 bits.
  // Where the processor adds four products into 32 bits at once, Dots are simply I32.
  static Dots zero_dots() { return zero_i32(); }
  static Dots add_dots(Dots acc, Bytes u, Bytes s) { return dot4_u8s8(acc, u, s); }
  // The sum of each lane's products.
  static I32 widen(Dots a) { return a; }
  // A part's scale, |scale| < 2^15, made ready; total + scale * the sum of each lane's products.
  static I32 make_scale(I32 scale) { return scale; }
  static I32 add_scaled(I32 total, Dots dots, I32 scale) {
    return add_i32(total, mul_i32(scale, dots));
  }
  // Two numbers of 16 bits per lane, a's in the low half; total + the products of both with those
  // of `pair`.
  static I32 make_pair(I32 a, I32 b) {
    return each_i32([&](int i) {
      return static_cast<std::int32_t>((static_cast<std::uint32_t>(a.v[i]) & 0xffffu) |
                                       static_cast<std::uint32_t>(b.v[i]) << 16);
    });
  }
  static I32 add_pairs(I32 total, I32 pairs, std::int32_t pair) {
    const auto low = [](std::int32_t x) { return static_cast<std::int16_t>(x & 0xffff); };
    const auto high = [](std::int32_t x) { return static_cast<std::int16_t>(x >> 16); };
    return each_i32([&](int i) {
      return total.v[i] + low(pairs.v[i]) * low(pair) + high(pairs.v[i]) * high(pair);
    });
  }
  // b never holds -128.
  static I32 dot4_s8s8(I32 acc, Bytes a, Bytes b) {
    return each_i32([&](int i) {
      std::int32_t sum = acc.v[i];
      for (int j = 4 * i; j < 4 * i + 4; ++j)
        sum += static_cast<std::int8_t>(a.v[j]) * static_cast<std::int8_t>(b.v[j]);
      return sum;
    });
  }

 private:
  template <class F>
  static I32 wrap(I32 a, I32 b, F f) {
    return each_i32([&](int i) {
      return static_cast<std::int32_t>(
          f(static_cast<std::uint32_t>(a.v[i]), static_cast<std::uint32_t>(b.v[i])));
    });
  }
  static float f16(std::uint16_t h) { return f16_to_f32(h); }
  static std::uint16_t to_f16(float f) { return f32_to_f16(f); }
};

}  // namespace
}  // namespace strata
