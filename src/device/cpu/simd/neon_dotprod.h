// The kernel vocabulary in NEON with the dot products of ARMv8.2: four products of bytes are added
// to each 32-bit lane. Only an ISA file compiled for them includes this.
#pragma once

#include "device/cpu/simd/neon_lanes.h"

namespace strata {
namespace {

struct NeonDotprod : NeonLanes {
  using Wide = NeonDotprod;
  using Dots = I32;

  // Chunk `lane` of four, which the instruction multiplies each lane with.
  struct Chunk {
    int8x16_t four;
    int lane;
  };

  static constexpr int dot_depth(int /*top*/) { return 64; }

  static Chunk broadcast4(const std::int8_t* p, int chunk) {
    return {vld1q_s8(p - chunk % 4 * 4), chunk % 4};
  }
  // Codes whose products are gathered stay below 128, so they are bytes with a sign, too.
  static Dots zero_dots() { return zero_i32(); }
  static Dots add_dots(Dots acc, Bytes u, Chunk s) { return dot4_s8s8(acc, u, s); }
  static Dots add_dots(Dots acc, Bytes u, Bytes s) { return dot4_s8s8(acc, u, s); }
  static I32 widen(Dots a) { return a; }
  static I32 add_scaled(I32 total, Dots dots, I32 scale) {
    return {vmlaq_u32(total.lo, dots.lo, scale.lo), vmlaq_u32(total.hi, dots.hi, scale.hi)};
  }
  static I32 dot4_s8s8(I32 acc, Bytes a, Chunk b) {
    return {dot4(acc.lo, a.lo, b), dot4(acc.hi, a.hi, b)};
  }
  static I32 dot4_s8s8(I32 acc, Bytes a, Bytes b) {
    return {dot4(acc.lo, a.lo, b.lo), dot4(acc.hi, a.hi, b.hi)};
  }

 private:
  static uint32x4_t dot4(uint32x4_t acc, uint8x16_t a, uint8x16_t b) {
    return vreinterpretq_u32_s32(
        vdotq_s32(vreinterpretq_s32_u32(acc), vreinterpretq_s8_u8(a), vreinterpretq_s8_u8(b)));
  }
  static uint32x4_t dot4(uint32x4_t acc, uint8x16_t a, Chunk b) {
    const int32x4_t sum = vreinterpretq_s32_u32(acc);
    const int8x16_t codes = vreinterpretq_s8_u8(a);
    // The instruction names the lane, so it must be a constant of the source.
    switch (b.lane) {
      case 0: return vreinterpretq_u32_s32(vdotq_laneq_s32(sum, codes, b.four, 0));
      case 1: return vreinterpretq_u32_s32(vdotq_laneq_s32(sum, codes, b.four, 1));
      case 2: return vreinterpretq_u32_s32(vdotq_laneq_s32(sum, codes, b.four, 2));
      default: return vreinterpretq_u32_s32(vdotq_laneq_s32(sum, codes, b.four, 3));
    }
  }
};

}  // namespace
}  // namespace strata
