// Small helpers that the formats' decoders and encoders share.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace strata {

inline std::uint16_t load_u16(const std::uint8_t* p) {
  return static_cast<std::uint16_t>(p[0] | (p[1] << 8));
}
inline void store_u16(std::uint8_t* p, std::uint16_t v) {
  p[0] = static_cast<std::uint8_t>(v & 0xff);
  p[1] = static_cast<std::uint8_t>(v >> 8);
}

// Nearest integer in [0, top], ties to even; not a number becomes 0.
inline int to_code(float x, int top) {
  if (!(x > 0)) return 0;
  if (x >= static_cast<float>(top)) return top;
  return static_cast<int>(std::nearbyint(x));
}

// Nearest integer in [-top, top], ties to even; not a number becomes 0.
inline int to_signed_code(float x, int top) { return x < 0 ? -to_code(-x, top) : to_code(x, top); }

}  // namespace strata
