// What the NEON vocabularies share: eight lanes are two 128-bit registers, each with four. Every
// AArch64 processor has these operations; products of bytes differ (neon.h, neon_dotprod.h).
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

namespace strata {
namespace {

struct NeonLanes {
  struct F32 {
    float32x4_t lo, hi;
  };
  struct I32 {  // without signs, since they wrap
    uint32x4_t lo, hi;
  };
  struct Bytes {
    uint8x16_t lo, hi;
  };
  using Weights = const std::uint8_t*;

  static constexpr int kWidth = 8;
  static constexpr bool kUnrolled = true;
  static constexpr bool kRaised = false;
  static constexpr bool kPanels = true;
  static constexpr int kStreamRows = 0;
  static constexpr int kFewRows = 4;
  static constexpr int kTileRows = 4;
  static constexpr int kTileCells = 1;

  static F32 zero() { return broadcast(0.0f); }
  static F32 broadcast(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x)}; }
  static F32 load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4)}; }
  static void store(float* p, F32 a) {
    vst1q_f32(p, a.lo);
    vst1q_f32(p + 4, a.hi);
  }
  static F32 add(F32 a, F32 b) { return {vaddq_f32(a.lo, b.lo), vaddq_f32(a.hi, b.hi)}; }
  static F32 sub(F32 a, F32 b) { return {vsubq_f32(a.lo, b.lo), vsubq_f32(a.hi, b.hi)}; }
  static F32 mul(F32 a, F32 b) { return {vmulq_f32(a.lo, b.lo), vmulq_f32(a.hi, b.hi)}; }
  static F32 div(F32 a, F32 b) { return {vdivq_f32(a.lo, b.lo), vdivq_f32(a.hi, b.hi)}; }
  static F32 fma(F32 a, F32 b, F32 c) {
    return {vfmaq_f32(c.lo, a.lo, b.lo), vfmaq_f32(c.hi, a.hi, b.hi)};
  }
  // Not vmaxq and vminq, which give a NaN wherever there is one.
  static F32 max(F32 a, F32 b) {
    return select({vcgtq_f32(a.lo, b.lo), vcgtq_f32(a.hi, b.hi)}, a, b);
  }
  static F32 min(F32 a, F32 b) {
    return select({vcltq_f32(a.lo, b.lo), vcltq_f32(a.hi, b.hi)}, a, b);
  }
  static F32 load_f16(const void* p) {
    const float16x8_t h = vreinterpretq_f16_u8(load16(p));
    return {vcvt_f32_f16(vget_low_f16(h)), vcvt_high_f32_f16(h)};
  }
  static F32 load_bf16(const void* p) {
    const uint16x8_t h = vreinterpretq_u16_u8(load16(p));
    return from_bits({vshll_n_u16(vget_low_u16(h), 16), vshll_high_n_u16(h, 16)});
  }
  static void store_f16(void* p, F32 a) {
    const float16x8_t h = vcvt_high_f16_f32(vcvt_f16_f32(a.lo), a.hi);
    vst1q_u8(static_cast<std::uint8_t*>(p), vreinterpretq_u8_f16(h));
  }
  static F32 to_f32(I32 a) {
    return {vcvtq_f32_s32(vreinterpretq_s32_u32(a.lo)), vcvtq_f32_s32(vreinterpretq_s32_u32(a.hi))};
  }
  static I32 bits(F32 a) { return {vreinterpretq_u32_f32(a.lo), vreinterpretq_u32_f32(a.hi)}; }
  static F32 from_bits(I32 a) { return {vreinterpretq_f32_u32(a.lo), vreinterpretq_f32_u32(a.hi)}; }
  static F32 select_range(int first, int last, F32 a, F32 b) {
    const int32x4_t lo = {0, 1, 2, 3}, hi = {4, 5, 6, 7};
    const int32x4_t from = vdupq_n_s32(first), to = vdupq_n_s32(last);
    return select({vandq_u32(vcgeq_s32(lo, from), vcltq_s32(lo, to)),
                   vandq_u32(vcgeq_s32(hi, from), vcltq_s32(hi, to))},
                  a, b);
  }
  static F32 load_twice(const float* p) {
    const float32x4_t four = vld1q_f32(p);
    return {vzip1q_f32(four, four), vzip2q_f32(four, four)};
  }
  static F32 swap_pairs(F32 a) { return {vrev64q_f32(a.lo), vrev64q_f32(a.hi)}; }
  static F32 sums_of_lanes(const F32 (&a)[8]) {
    // Lanes j and j + 4 of each, then j and j + 2 of two such, then j and j + 1.
    const auto halve = [](F32 x, F32 y) {
      const float64x2_t p = vreinterpretq_f64_f32(vaddq_f32(x.lo, x.hi));
      const float64x2_t q = vreinterpretq_f64_f32(vaddq_f32(y.lo, y.hi));
      return vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(p, q)),
                       vreinterpretq_f32_f64(vzip2q_f64(p, q)));
    };
    return {vpaddq_f32(halve(a[0], a[1]), halve(a[2], a[3])),
            vpaddq_f32(halve(a[4], a[5]), halve(a[6], a[7]))};
  }

  static I32 zero_i32() { return broadcast_i32(0); }
  static I32 broadcast_i32(std::int32_t x) {
    const uint32x4_t all = vreinterpretq_u32_s32(vdupq_n_s32(x));
    return {all, all};
  }
  static I32 load_i32(const void* p) { return words(load_bytes(p)); }
  static void store_i32(std::int32_t* p, I32 a) {
    vst1q_s32(p, vreinterpretq_s32_u32(a.lo));
    vst1q_s32(p + 4, vreinterpretq_s32_u32(a.hi));
  }
  static I32 add_i32(I32 a, I32 b) { return {vaddq_u32(a.lo, b.lo), vaddq_u32(a.hi, b.hi)}; }
  static I32 sub_i32(I32 a, I32 b) { return {vsubq_u32(a.lo, b.lo), vsubq_u32(a.hi, b.hi)}; }
  static I32 mul_i32(I32 a, I32 b) { return {vmulq_u32(a.lo, b.lo), vmulq_u32(a.hi, b.hi)}; }
  static I32 or_i32(I32 a, I32 b) { return {vorrq_u32(a.lo, b.lo), vorrq_u32(a.hi, b.hi)}; }
  static I32 max_i32(I32 a, I32 b) { return {max_signed(a.lo, b.lo), max_signed(a.hi, b.hi)}; }
  static I32 and_i32(I32 a, std::int32_t mask) {
    const uint32x4_t all = vreinterpretq_u32_s32(vdupq_n_s32(mask));
    return {vandq_u32(a.lo, all), vandq_u32(a.hi, all)};
  }
  static I32 shr_i32(I32 a, int bits) { return {a.lo >> bits, a.hi >> bits}; }
  static I32 shl_i32(I32 a, int bits) { return {a.lo << bits, a.hi << bits}; }
  static I32 load_u8_i32(Weights w, std::size_t offset) {
    const uint16x8_t wide = vmovl_u8(vld1_u8(w + offset));
    return {vmovl_u16(vget_low_u16(wide)), vmovl_high_u16(wide)};
  }
  static I32 load_s8_i32(Weights w, std::size_t offset) {
    const int16x8_t wide = vmovl_s8(vreinterpret_s8_u8(vld1_u8(w + offset)));
    return {vreinterpretq_u32_s32(vmovl_s16(vget_low_s16(wide))),
            vreinterpretq_u32_s32(vmovl_high_s16(wide))};
  }
  static void store_low_bytes(std::int8_t* p, I32 a) {
    const uint16x8_t low = vcombine_u16(vmovn_u32(a.lo), vmovn_u32(a.hi));
    vst1_s8(p, vreinterpret_s8_u8(vmovn_u16(low)));
  }

  static Weights weights(const std::uint8_t* const* groups) { return groups[0]; }
  static Weights advance(Weights w, std::size_t bytes) { return w + bytes; }
  static const std::uint8_t* group(Weights w, int /*index*/) { return w; }
  static I32 load_i32(Weights w, std::size_t offset) { return load_i32(w + offset); }
  static F32 load_f16(Weights w, std::size_t offset) { return load_f16(w + offset); }
  static F32 load_bf16(Weights w, std::size_t offset) { return load_bf16(w + offset); }
  static Bytes load_bytes(Weights w, std::size_t offset) { return load_bytes(w + offset); }

  static Bytes load_bytes(const void* p) {
    return {load16(p), load16(static_cast<const std::uint8_t*>(p) + 16)};
  }
  static void store_bytes(void* p, Bytes a) {
    vst1q_u8(static_cast<std::uint8_t*>(p), a.lo);
    vst1q_u8(static_cast<std::uint8_t*>(p) + 16, a.hi);
  }
  static Bytes broadcast_byte(std::uint8_t x) { return {vdupq_n_u8(x), vdupq_n_u8(x)}; }
  static Bytes low_nibbles(Bytes a) { return bit_field(a, 0, 0xf, 0); }
  static Bytes high_nibbles(Bytes a) { return {vshrq_n_u8(a.lo, 4), vshrq_n_u8(a.hi, 4)}; }
  static Bytes or_bytes(Bytes a, Bytes b) { return {vorrq_u8(a.lo, b.lo), vorrq_u8(a.hi, b.hi)}; }
  static Bytes lookup(const std::int8_t (&values)[16], Bytes index) {
    const uint8x16_t table = load16(values);
    return {vqtbl1q_u8(table, index.lo), vqtbl1q_u8(table, index.hi)};
  }
  static Bytes bit_field(Bytes a, int shift, int mask, int left) {
    const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(mask << left));
    if (left > shift)
      return {vandq_u8(a.lo << (left - shift), all), vandq_u8(a.hi << (left - shift), all)};
    return {vandq_u8(a.lo >> (shift - left), all), vandq_u8(a.hi >> (shift - left), all)};
  }
  static Bytes expand_bits(I32 words, int first, int value) {
    // Each lane's byte (first / 8) four times, then one bit tested per byte.
    const uint8x16_t lane = {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12};
    const uint8x16_t byte = vaddq_u8(lane, vdupq_n_u8(static_cast<std::uint8_t>(first / 8)));
    const uint8x16_t bit = vreinterpretq_u8_u32(vdupq_n_u32(0x08040201u << (first % 8)));
    const uint8x16_t all = vdupq_n_u8(static_cast<std::uint8_t>(value));
    const auto expand = [&](uint32x4_t half) {
      return vandq_u8(vtstq_u8(vqtbl1q_u8(vreinterpretq_u8_u32(half), byte), bit), all);
    };
    return {expand(words.lo), expand(words.hi)};
  }

  // The numbers of one kind side by side, so that each is multiplied by one 16-bit lane.
  static I32 make_pair(I32 a, I32 b) { return {narrow(a), narrow(b)}; }
  static I32 add_pairs(I32 total, I32 pairs, std::int32_t pair) {
    const int16x4_t both = vreinterpret_s16_s32(vdup_n_s32(pair));
    const int16x8_t a = vreinterpretq_s16_u32(pairs.lo), b = vreinterpretq_s16_u32(pairs.hi);
    int32x4_t lo = vreinterpretq_s32_u32(total.lo), hi = vreinterpretq_s32_u32(total.hi);
    lo = vmlal_lane_s16(vmlal_lane_s16(lo, vget_low_s16(a), both, 0), vget_low_s16(b), both, 1);
    hi = vmlal_high_lane_s16(vmlal_high_lane_s16(hi, a, both, 0), b, both, 1);
    return {vreinterpretq_u32_s32(lo), vreinterpretq_u32_s32(hi)};
  }
  static I32 make_scale(I32 scale) { return scale; }

 protected:
  static uint8x16_t load16(const void* p) { return vld1q_u8(static_cast<const std::uint8_t*>(p)); }
  static I32 words(Bytes a) { return {vreinterpretq_u32_u8(a.lo), vreinterpretq_u32_u8(a.hi)}; }
  static F32 select(I32 mask, F32 a, F32 b) {
    return {vbslq_f32(mask.lo, a.lo, b.lo), vbslq_f32(mask.hi, a.hi, b.hi)};
  }
  static uint32x4_t narrow(I32 a) {
    return vreinterpretq_u32_u16(vcombine_u16(vmovn_u32(a.lo), vmovn_u32(a.hi)));
  }
  static uint32x4_t max_signed(uint32x4_t a, uint32x4_t b) {
    return vreinterpretq_u32_s32(vmaxq_s32(vreinterpretq_s32_u32(a), vreinterpretq_s32_u32(b)));
  }
};

}  // namespace
}  // namespace strata
