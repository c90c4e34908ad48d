// The kernel vocabulary in AVX2, FMA and F16C. Only an ISA file compiled for them includes this.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace strata {
namespace {

struct Avx2 {
  using Wide = Avx2;

  using F32 = __m256;
  using I32 = __m256i;
  using Bytes = __m256i;
  using Dots = __m256i;  // pairs of products in 16 bits
  using Weights = const std::uint8_t*;

  static constexpr int kWidth = 8;
  static constexpr bool kUnrolled = true;
  static constexpr bool kRaised = false;
  static constexpr bool kPanels = true;
  static constexpr int kStreamRows = 0;
  static constexpr int kFewRows = 8;
  static constexpr int kTileRows = 4;
  static constexpr int kTileCells = 2;
  static constexpr int dot_depth(int top) { return 32767 / (2 * 127 * top); }

  static F32 zero() { return _mm256_setzero_ps(); }
  static F32 broadcast(float x) { return _mm256_set1_ps(x); }
  static F32 load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, F32 a) { _mm256_storeu_ps(p, a); }
  static F32 add(F32 a, F32 b) { return _mm256_add_ps(a, b); }
  static F32 sub(F32 a, F32 b) { return _mm256_sub_ps(a, b); }
  static F32 mul(F32 a, F32 b) { return _mm256_mul_ps(a, b); }
  static F32 div(F32 a, F32 b) { return _mm256_div_ps(a, b); }
  static F32 fma(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
  static F32 max(F32 a, F32 b) { return _mm256_max_ps(a, b); }
  static F32 min(F32 a, F32 b) { return _mm256_min_ps(a, b); }
  static F32 load_f16(const void* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p)));
  }
  static F32 load_bf16(const void* p) {
    const __m128i h = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
  }
  static void store_f16(void* p, F32 a) {
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
  static F32 to_f32(I32 a) { return _mm256_cvtepi32_ps(a); }
  static I32 bits(F32 a) { return _mm256_castps_si256(a); }
  static F32 from_bits(I32 a) { return _mm256_castsi256_ps(a); }
  static F32 select_range(int first, int last, F32 a, F32 b) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i from = _mm256_cmpgt_epi32(lane, _mm256_set1_epi32(first - 1));
    const __m256i to = _mm256_cmpgt_epi32(_mm256_set1_epi32(last), lane);
    return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(_mm256_and_si256(from, to)));
  }
  static F32 load_twice(const float* p) {
    const __m256 four = _mm256_castps128_ps256(_mm_loadu_ps(p));
    return _mm256_permutevar8x32_ps(four, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
  }
  static F32 swap_pairs(F32 a) { return _mm256_permute_ps(a, 0xb1); }
  static F32 sums_of_lanes(const F32 (&a)[8]) {
    // Lanes j and j + 4 of a[i] and a[i + 4], then j and j + 2 of two such, then j and j + 1.
    __m256 fours[4];
    for (int i = 0; i < 4; ++i)
      fours[i] = _mm256_add_ps(_mm256_permute2f128_ps(a[i], a[i + 4], 0x20),
                               _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    const auto halve = [](__m256 x, __m256 y) {
      return _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x44), _mm256_shuffle_ps(x, y, 0xee));
    };
    const __m256 low = halve(fours[0], fours[1]), high = halve(fours[2], fours[3]);
    return _mm256_add_ps(_mm256_shuffle_ps(low, high, 0x88), _mm256_shuffle_ps(low, high, 0xdd));
  }

  static I32 zero_i32() { return _mm256_setzero_si256(); }
  static I32 broadcast_i32(std::int32_t x) { return _mm256_set1_epi32(x); }
  static I32 load_i32(const void* p) { return load_bytes(p); }
  static void store_i32(std::int32_t* p, I32 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
  }
  static I32 add_i32(I32 a, I32 b) { return _mm256_add_epi32(a, b); }
  static I32 sub_i32(I32 a, I32 b) { return _mm256_sub_epi32(a, b); }
  static I32 mul_i32(I32 a, I32 b) { return _mm256_mullo_epi32(a, b); }
  static I32 or_i32(I32 a, I32 b) { return _mm256_or_si256(a, b); }
  static I32 max_i32(I32 a, I32 b) { return _mm256_max_epi32(a, b); }
  static I32 and_i32(I32 a, std::int32_t mask) {
    return _mm256_and_si256(a, _mm256_set1_epi32(mask));
  }
  static I32 shr_i32(I32 a, int bits) { return _mm256_srli_epi32(a, bits); }
  static I32 shl_i32(I32 a, int bits) { return _mm256_slli_epi32(a, bits); }
  static I32 load_u8_i32(Weights w, std::size_t offset) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(w + offset)));
  }
  static I32 load_s8_i32(Weights w, std::size_t offset) {
    return _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(w + offset)));
  }
  static Weights weights(const std::uint8_t* const* groups) { return groups[0]; }
  static Weights advance(Weights w, std::size_t bytes) { return w + bytes; }
  static const std::uint8_t* group(Weights w, int /*index*/) { return w; }
  static I32 load_i32(Weights w, std::size_t offset) { return load_i32(w + offset); }
  static F32 load_f16(Weights w, std::size_t offset) { return load_f16(w + offset); }
  static F32 load_bf16(Weights w, std::size_t offset) { return load_bf16(w + offset); }
  static Bytes load_bytes(Weights w, std::size_t offset) { return load_bytes(w + offset); }
  static void store_low_bytes(std::int8_t* p, I32 a) {
    const __m256i low = _mm256_shuffle_epi8(
        a, _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8,
                            12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1));
    const std::int32_t halves[2] = {_mm256_extract_epi32(low, 0), _mm256_extract_epi32(low, 4)};
    std::memcpy(p, halves, 8);
  }

  static Bytes load_bytes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static void store_bytes(void* p, Bytes a) { _mm256_storeu_si256(static_cast<__m256i*>(p), a); }
  static Bytes broadcast4(const std::int8_t* p, int /*chunk*/) {
    std::int32_t word;
    std::memcpy(&word, p, 4);
    return _mm256_set1_epi32(word);
  }
  static Bytes broadcast_byte(std::uint8_t x) { return _mm256_set1_epi8(static_cast<char>(x)); }
  static Bytes low_nibbles(Bytes a) { return _mm256_and_si256(a, _mm256_set1_epi8(0xf)); }
  static Bytes high_nibbles(Bytes a) { return low_nibbles(_mm256_srli_epi16(a, 4)); }
  static Bytes or_bytes(Bytes a, Bytes b) { return _mm256_or_si256(a, b); }
  static Bytes lookup(const std::int8_t (&values)[16], Bytes index) {
    const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(table), index);
  }
  static Bytes bit_field(Bytes a, int shift, int mask, int left) {
    const __m256i moved =
        left > shift ? _mm256_slli_epi16(a, left - shift) : _mm256_srli_epi16(a, shift - left);
    return _mm256_and_si256(moved, _mm256_set1_epi8(static_cast<char>(mask << left)));
  }
  static Bytes expand_bits(I32 words, int first, int value) {
    // Each lane's byte (first / 8) four times, then one bit tested per byte.
    const __m256i spread = _mm256_shuffle_epi8(
        words,
        _mm256_add_epi8(_mm256_set1_epi8(static_cast<char>(first / 8)),
                        _mm256_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12, 0, 0,
                                         0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12)));
    const __m256i bit = _mm256_set1_epi32(0x08040201 << (first % 8));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
    return _mm256_and_si256(set, _mm256_set1_epi8(static_cast<char>(value)));
  }
  static I32 dot4_u8s8(I32 acc, Bytes u, Bytes s) {
    const __m256i pairs = _mm256_maddubs_epi16(u, s);
    return in_order(_mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1))));
  }
  static Dots zero_dots() { return _mm256_setzero_si256(); }
  static Dots add_dots(Dots acc, Bytes u, Bytes s) {
    return in_order(_mm256_add_epi16(acc, _mm256_maddubs_epi16(u, s)));
  }
  static I32 widen(Dots a) { return _mm256_madd_epi16(a, _mm256_set1_epi16(1)); }
  static I32 make_scale(I32 scale) {
    return _mm256_shuffle_epi8(scale, _mm256_broadcastsi128_si256(_mm_setr_epi8(
                                          0, 1, 0, 1, 4, 5, 4, 5, 8, 9, 8, 9, 12, 13, 12, 13)));
  }
  static I32 add_scaled(I32 total, Dots dots, I32 scale) {
    return _mm256_add_epi32(total, _mm256_madd_epi16(dots, scale));
  }
  static I32 make_pair(I32 a, I32 b) {
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
  }
  static I32 add_pairs(I32 total, I32 pairs, std::int32_t pair) {
    return _mm256_add_epi32(total, _mm256_madd_epi16(pairs, _mm256_set1_epi32(pair)));
  }
  // |a| <= 128 and |b| <= 127, so a pair's sum stays below 2^15.
  static I32 dot4_s8s8(I32 acc, Bytes a, Bytes b) {
    return dot4_u8s8(acc, _mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
  }

 private:
  // Compilers like to sum in a tree, for which the registers do not suffice.
  static __m256i in_order(__m256i sum) {
    asm("" : "+x"(sum));
    return sum;
  }
};

}  // namespace
}  // namespace strata
