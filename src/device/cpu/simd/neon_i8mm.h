// The kernel vocabulary in NEON with matrix products of bytes: one instruction multiplies eight
// codes of two weight rows with two rows of activations. Only an ISA file compiled for them
// includes this.
#pragma once

#include "device/cpu/simd/neon_dotprod.h"

namespace strata {
namespace {

struct NeonI8mm : NeonDotprod {
  using Wide = NeonI8mm;
  using TwoRows = int8x16_t;

  // Of two chunks of eight weight rows, one behind the other, makes each row's eight codes lie side
  // by side.
  static void pair_chunks(void* p) {
    auto* words = static_cast<std::uint32_t*>(p);
    const I32 a = load_i32(words), b = load_i32(words + 8);
    const uint32x4x2_t lo = {{a.lo, b.lo}}, hi = {{a.hi, b.hi}};
    vst2q_u32(words, lo);
    vst2q_u32(words + 8, hi);
  }
  // The first or second of them.
  static Bytes load_one_chunk(const void* p, int which) {
    const I32 lo = load_i32(p), hi = load_i32(static_cast<const std::uint8_t*>(p) + 32);
    if (which == 0) return bytes({vuzp1q_u32(lo.lo, lo.hi), vuzp1q_u32(hi.lo, hi.hi)});
    return bytes({vuzp2q_u32(lo.lo, lo.hi), vuzp2q_u32(hi.lo, hi.hi)});
  }

  // Chunks 2 pair and 2 pair + 1 of two rows of activations.
  static TwoRows two_rows(const std::int8_t* a, const std::int8_t* b, int pair) {
    const int64x2_t x = vreinterpretq_s64_s8(vld1q_s8(a + pair / 2 * 16));
    const int64x2_t y = vreinterpretq_s64_s8(vld1q_s8(b + pair / 2 * 16));
    return vreinterpretq_s8_s64(pair % 2 == 0 ? vzip1q_s64(x, y) : vzip2q_s64(x, y));
  }
  // Of four weight rows: the products of the first two, then those of the others; of either, both
  // rows' with the first activations, then with the second.
  static I32 add_two_rows(I32 acc, Bytes codes, TwoRows rows) {
    return {multiply(acc.lo, codes.lo, rows), multiply(acc.hi, codes.hi, rows)};
  }
  // Scales of weight rows 4 half .. 4 half + 3 in that order.
  static I32 two_row_scales(I32 scale, int half) {
    const uint64x2_t four = vreinterpretq_u64_u32(half == 0 ? scale.lo : scale.hi);
    return {vreinterpretq_u32_u64(vdupq_laneq_u64(four, 0)),
            vreinterpretq_u32_u64(vdupq_laneq_u64(four, 1))};
  }
  // From weight rows 0..3 and 4..7 in that order to one row of activations each.
  static void separate_rows(I32& a, I32& b) {
    const I32 first = {even(a.lo, a.hi), even(b.lo, b.hi)};
    b = {odd(a.lo, a.hi), odd(b.lo, b.hi)};
    a = first;
  }

 private:
  static Bytes bytes(I32 a) { return {vreinterpretq_u8_u32(a.lo), vreinterpretq_u8_u32(a.hi)}; }
  static uint32x4_t multiply(uint32x4_t acc, uint8x16_t codes, TwoRows rows) {
    return vreinterpretq_u32_s32(
        vmmlaq_s32(vreinterpretq_s32_u32(acc), rows, vreinterpretq_s8_u8(codes)));
  }
  static uint32x4_t even(uint32x4_t a, uint32x4_t b) {
    return vreinterpretq_u32_u64(vzip1q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
  }
  static uint32x4_t odd(uint32x4_t a, uint32x4_t b) {
    return vreinterpretq_u32_u64(vzip2q_u64(vreinterpretq_u64_u32(a), vreinterpretq_u64_u32(b)));
  }
};

}  // namespace
}  // namespace strata
