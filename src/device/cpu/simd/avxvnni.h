// The vocabulary of matrix products in AVX2 with AVX-VNNI: four products are added into 32 bits at
// once. Only an ISA file compiled for them includes this.
#pragma once

#include "device/cpu/simd/avx2.h"

namespace strata {
namespace {

struct AvxVnni : Avx2 {
  using Dots = I32;

  static constexpr bool kRaised = true;
  static constexpr int dot_depth(int /*top*/) { return 64; }

  static Bytes sub_bytes(Bytes a, Bytes b) { return _mm256_sub_epi8(a, b); }
  static Bytes raise(Bytes a) { return _mm256_xor_si256(a, broadcast_byte(0x80)); }
  static I32 dot4_u8s8(I32 acc, Bytes u, Bytes s) { return _mm256_dpbusd_avx_epi32(acc, u, s); }
  // b are activations raised by 128.
  static I32 dot4_s8s8(I32 acc, Bytes a, Bytes b) { return dot4_u8s8(acc, b, a); }
  static Dots add_dots(Dots acc, Bytes u, Bytes s) { return dot4_u8s8(acc, u, s); }
  static I32 widen(Dots a) { return a; }
  static I32 make_scale(I32 scale) { return scale; }
  static I32 add_scaled(I32 total, Dots dots, I32 scale) {
    return add_i32(total, mul_i32(scale, dots));
  }
  static I32 add_pairs(I32 total, I32 pairs, std::int32_t pair) {
    return _mm256_dpwssd_avx_epi32(total, pairs, broadcast_i32(pair));
  }
};

}  // namespace
}  // namespace strata
