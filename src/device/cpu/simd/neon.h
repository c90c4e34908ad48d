// The kernel vocabulary in what every AArch64 processor has.
#pragma once

#include "device/cpu/simd/neon_lanes.h"

namespace strata {
namespace {

struct Neon : NeonLanes {
  using Wide = Neon;

  // One product in 16 bits of each byte of a lane. Codes that products are gathered of are below
  // 128, and so are bytes with a sign, too.
  struct Dots {
    int16x8_t v[4];
  };

  static constexpr int dot_depth(int top) { return 32767 / (127 * top); }

  static Bytes broadcast4(const std::int8_t* p, int /*chunk*/) {
    std::uint32_t word;
    std::memcpy(&word, p, 4);
    const uint8x16_t all = vreinterpretq_u8_u32(vdupq_n_u32(word));
    return {all, all};
  }
  static Dots zero_dots() {
    const int16x8_t zero = vdupq_n_s16(0);
    return {{zero, zero, zero, zero}};
  }
  static Dots add_dots(Dots acc, Bytes u, Bytes s) {
    const int8x16_t u_lo = vreinterpretq_s8_u8(u.lo), s_lo = vreinterpretq_s8_u8(s.lo);
    const int8x16_t u_hi = vreinterpretq_s8_u8(u.hi), s_hi = vreinterpretq_s8_u8(s.hi);
    return {{vmlal_s8(acc.v[0], vget_low_s8(u_lo), vget_low_s8(s_lo)),
             vmlal_high_s8(acc.v[1], u_lo, s_lo),
             vmlal_s8(acc.v[2], vget_low_s8(u_hi), vget_low_s8(s_hi)),
             vmlal_high_s8(acc.v[3], u_hi, s_hi)}};
  }
  static I32 widen(Dots a) { return {sum4(a.v[0], a.v[1]), sum4(a.v[2], a.v[3])}; }
  static I32 add_scaled(I32 total, Dots dots, I32 scale) {
    return add_i32(total, mul_i32(scale, widen(dots)));
  }
  static I32 dot4_s8s8(I32 acc, Bytes a, Bytes b) {
    return {add_sum4(acc.lo, vreinterpretq_s8_u8(a.lo), vreinterpretq_s8_u8(b.lo)),
            add_sum4(acc.hi, vreinterpretq_s8_u8(a.hi), vreinterpretq_s8_u8(b.hi))};
  }

 private:
  static uint32x4_t sum4(int16x8_t low, int16x8_t high) {
    return vreinterpretq_u32_s32(vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
  }
  // |a| <= 128 and |b| <= 127, so a pair's sum stays below 2^15.
  static uint32x4_t add_sum4(uint32x4_t acc, int8x16_t a, int8x16_t b) {
    const int16x8_t pairs =
        vpaddq_s16(vmull_s8(vget_low_s8(a), vget_low_s8(b)), vmull_high_s8(a, b));
    return vreinterpretq_u32_s32(vpadalq_s16(vreinterpretq_s32_u32(acc), pairs));
  }
};

}  // namespace
}  // namespace strata
