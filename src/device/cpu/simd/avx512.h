// The vocabulary of matrix products in AVX-512 with VNNI: a cell is two groups of eight weight
// rows. Only an ISA file compiled for them includes this.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "device/cpu/simd/avx2.h"

namespace strata {
namespace {

struct Avx512 {
  using F32 = __m512;
  using I32 = __m512i;
  using Bytes = __m512i;
  using Dots = I32;
  struct Weights {
    const std::uint8_t* low;
    const std::uint8_t* high;
  };

  static constexpr int kWidth = 16;
  static constexpr bool kUnrolled = true;
  static constexpr bool kPanels = true;
  static constexpr bool kRaised = true;
  // For so few rows memory is the limit, and it gives one stream of weights faster than two.
  using Narrow = Avx2;
  static constexpr int kStreamRows = 4;
  static constexpr int kFewRows = 6;
  static constexpr int kTileRows = 6;
  static constexpr int kTileCells = 2;
  static constexpr int dot_depth(int /*top*/) { return 64; }

  static F32 zero() { return _mm512_setzero_ps(); }
  static F32 broadcast(float x) { return _mm512_set1_ps(x); }
  static F32 load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, F32 a) { _mm512_storeu_ps(p, a); }
  static F32 add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
  static F32 mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
  static F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
  static F32 to_f32(I32 a) { return _mm512_cvtepi32_ps(a); }
  static I32 bits(F32 a) { return _mm512_castps_si512(a); }
  static F32 from_bits(I32 a) { return _mm512_castsi512_ps(a); }

  static I32 zero_i32() { return _mm512_setzero_si512(); }
  static I32 broadcast_i32(std::int32_t x) { return _mm512_set1_epi32(x); }
  static I32 load_i32(const void* p) { return _mm512_loadu_si512(p); }
  static void store_i32(std::int32_t* p, I32 a) { _mm512_storeu_si512(p, a); }
  static I32 add_i32(I32 a, I32 b) { return _mm512_add_epi32(a, b); }
  static I32 sub_i32(I32 a, I32 b) { return _mm512_sub_epi32(a, b); }
  static I32 mul_i32(I32 a, I32 b) { return _mm512_mullo_epi32(a, b); }
  static I32 or_i32(I32 a, I32 b) { return _mm512_or_si512(a, b); }
  static I32 max_i32(I32 a, I32 b) { return _mm512_max_epi32(a, b); }
  static I32 and_i32(I32 a, std::int32_t mask) {
    return _mm512_and_si512(a, _mm512_set1_epi32(mask));
  }
  static I32 shr_i32(I32 a, int bits) { return _mm512_srli_epi32(a, static_cast<unsigned>(bits)); }
  static I32 shl_i32(I32 a, int bits) { return _mm512_slli_epi32(a, static_cast<unsigned>(bits)); }

  static Weights weights(const std::uint8_t* const* groups) { return {groups[0], groups[1]}; }
  static Weights advance(Weights w, std::size_t bytes) { return {w.low + bytes, w.high + bytes}; }
  static const std::uint8_t* group(Weights w, int index) { return index == 0 ? w.low : w.high; }
  static I32 load_u8_i32(Weights w, std::size_t offset) {
    return _mm512_cvtepu8_epi32(eights(w, offset));
  }
  static I32 load_s8_i32(Weights w, std::size_t offset) {
    return _mm512_cvtepi8_epi32(eights(w, offset));
  }
  static I32 load_i32(Weights w, std::size_t offset) { return load_bytes(w, offset); }
  static F32 load_f16(Weights w, std::size_t offset) {
    return _mm512_cvtph_ps(sixteens(w, offset));
  }
  static F32 load_bf16(Weights w, std::size_t offset) {
    return from_bits(shl_i32(_mm512_cvtepu16_epi32(sixteens(w, offset)), 16));
  }
  static Bytes load_bytes(Weights w, std::size_t offset) {
    const auto* low = reinterpret_cast<const __m256i*>(w.low + offset);
    const auto* high = reinterpret_cast<const __m256i*>(w.high + offset);
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_loadu_si256(low)),
                              _mm256_loadu_si256(high), 1);
  }

  static Bytes load_bytes(const void* p) { return _mm512_loadu_si512(p); }
  static void store_bytes(void* p, Bytes a) { _mm512_storeu_si512(p, a); }
  static Bytes broadcast4(const std::int8_t* p, int /*chunk*/) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return _mm512_set1_epi32(word);
  }
  static Bytes broadcast_byte(std::uint8_t x) { return _mm512_set1_epi8(static_cast<char>(x)); }
  static Bytes low_nibbles(Bytes a) { return _mm512_and_si512(a, _mm512_set1_epi8(0xf)); }
  static Bytes high_nibbles(Bytes a) { return low_nibbles(_mm512_srli_epi16(a, 4)); }
  static Bytes or_bytes(Bytes a, Bytes b) { return _mm512_or_si512(a, b); }
  static Bytes sub_bytes(Bytes a, Bytes b) { return _mm512_sub_epi8(a, b); }
  static Bytes lookup(const std::int8_t (&values)[16], Bytes index) {
    const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(table), index);
  }
  static Bytes bit_field(Bytes a, int shift, int mask, int left) {
    const __m512i moved = left > shift ? _mm512_slli_epi16(a, static_cast<unsigned>(left - shift))
                                       : _mm512_srli_epi16(a, static_cast<unsigned>(shift - left));
    return _mm512_and_si512(moved, broadcast_byte(static_cast<std::uint8_t>(mask << left)));
  }
  static Bytes expand_bits(I32 words, int first, int value) {
    // Each lane's byte (first / 8) four times, then one bit tested per byte.
    const __m512i spread = _mm512_shuffle_epi8(
        words, _mm512_add_epi8(_mm512_set1_epi8(static_cast<char>(first / 8)),
                               _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8,
                                                                    8, 12, 12, 12, 12))));
    const __mmask64 set =
        _mm512_test_epi8_mask(spread, _mm512_set1_epi32(0x08040201 << (first % 8)));
    return _mm512_maskz_set1_epi8(set, static_cast<char>(value));
  }
  static I32 dot4_u8s8(I32 acc, Bytes u, Bytes s) { return _mm512_dpbusd_epi32(acc, u, s); }
  // b are activations raised by 128.
  static I32 dot4_s8s8(I32 acc, Bytes a, Bytes b) { return dot4_u8s8(acc, b, a); }
  static Dots zero_dots() { return zero_i32(); }
  static Dots add_dots(Dots acc, Bytes u, Bytes s) { return dot4_u8s8(acc, u, s); }
  static I32 widen(Dots a) { return a; }
  static I32 make_scale(I32 scale) { return scale; }
  static I32 add_scaled(I32 total, Dots dots, I32 scale) {
    return add_i32(total, mul_i32(scale, dots));
  }
  static I32 make_pair(I32 a, I32 b) { return _mm512_mask_blend_epi16(kOdd, a, shl_i32(b, 16)); }
  static I32 add_pairs(I32 total, I32 pairs, std::int32_t pair) {
    return _mm512_dpwssd_epi32(total, pairs, _mm512_set1_epi32(pair));
  }
  // The bytes plus 128, as numbers without sign.
  static Bytes raise(Bytes a) { return _mm512_xor_si512(a, broadcast_byte(0x80)); }

 private:
  static constexpr __mmask32 kOdd = 0xaaaaaaaa;

  static __m128i eights(Weights w, std::size_t offset) {
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(w.low + offset));
    return _mm_castps_si128(
        _mm_loadh_pi(_mm_castsi128_ps(low), reinterpret_cast<const __m64*>(w.high + offset)));
  }
  static __m256i sixteens(Weights w, std::size_t offset) {
    const auto* low = reinterpret_cast<const __m128i*>(w.low + offset);
    const auto* high = reinterpret_cast<const __m128i*>(w.high + offset);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)),
                                   _mm_loadu_si128(high), 1);
  }
};

}  // namespace
}  // namespace strata
