// IEEE half and bfloat16 conversions, portable and exact; narrowing rounds to nearest even. Always
// inlined, as kernels of every ISA call them: a shared copy might be made for any one of those.
#pragma once

#include <cstdint>

namespace strata {

[[gnu::always_inline]] inline float f16_to_f32(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fu;
  const std::uint32_t mantissa = h & 0x3ffu;
  if (exponent == 0x1f) return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    // A subnormal half is mantissa * 2^-24, exact in f32.
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(std::uint32_t, magnitude));
  }
  return __builtin_bit_cast(float, sign | ((exponent + 112) << 23) | (mantissa << 13));
}

[[gnu::always_inline]] inline std::uint16_t f32_to_f16(float f) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  const std::uint16_t sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)  // NaN: quiet, keep the top of the payload
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half: adding 0.5 leaves round(value * 2^24) in the low mantissa.
    const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign |
                                      (__builtin_bit_cast(std::uint32_t, shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

[[gnu::always_inline]] inline float bf16_to_f32(std::uint16_t h) {
  return __builtin_bit_cast(float, static_cast<std::uint32_t>(h) << 16);
}

[[gnu::always_inline]] inline std::uint16_t f32_to_bf16(float f) {
  const std::uint32_t bits = __builtin_bit_cast(std::uint32_t, f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace strata
