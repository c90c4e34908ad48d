// Small helpers that the formats' decoders and encoders share.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace strata {

// Always inlined, as kernels of every ISA call it: a shared copy might be made for any one of
// those.
[[gnu::always_inline]] inline std::uint16_t load_u16(const std::uint8_t* p) {
  return static_cast<std::uint16_t>(p[0] | (p[1] << 8));
}
inline void store_u16(std::uint8_t* p, std::uint16_t v) {
  p[0] = static_cast<std::uint8_t>(v & 0xff);
  p[1] = static_cast<std::uint8_t>(v >> 8);
}
[[gnu::always_inline]] inline std::uint32_t load_u32(const std::uint8_t* p) {
  return load_u16(p) | std::uint32_t{load_u16(p + 2)} << 16;
}
inline void store_u32(std::uint8_t* p, std::uint32_t v) {
  store_u16(p, static_cast<std::uint16_t>(v & 0xffff));
  store_u16(p + 2, static_cast<std::uint16_t>(v >> 16));
}

// Nearest integer in [0, top], ties to even; not a number becomes 0.
inline int to_code(float x, int top) {
  if (!(x > 0)) return 0;
  if (x >= static_cast<float>(top)) return top;
  return static_cast<int>(std::nearbyint(x));
}

// Nearest integer in [-top, top], ties to even; not a number becomes 0.
inline int to_signed_code(float x, int top) { return x < 0 ? -to_code(-x, top) : to_code(x, top); }

// The largest |in[i]|, over what is a number.
inline float largest_magnitude(const float* in, int n) {
  float largest = 0;
  for (int i = 0; i < n; ++i)
    if (std::fabs(in[i]) > largest) largest = std::fabs(in[i]);
  return largest;
}
// The value of largest magnitude, with its sign.
inline float extreme_value(const float* in, int n) {
  float extreme = 0;
  for (int i = 0; i < n; ++i)
    if (std::fabs(in[i]) > std::fabs(extreme)) extreme = in[i];
  return extreme;
}

}  // namespace strata
