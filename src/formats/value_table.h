// What the formats share whose 4-bit codes index sixteen signed values.
#pragma once

#include <cmath>

#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

// V keeps each ISA's copy of a table to itself.
//
// The values of IQ4_NL and IQ4_XS.
template <class V>
inline constexpr std::int8_t kNonlinearValues[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                                     1,    13,   25,  38,  53,  69,  89,  113};
// Twice the values of a 4-bit float: one sign, two exponent bits, one mantissa bit (E2M1 of the OCP
// Microscaling Formats specification).
template <class V>
inline constexpr std::int8_t kFloat4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                  0, -1, -2, -3, -4, -6, -8, -12};

// The code of the value nearest to x; not a number becomes 0.
inline std::uint8_t nearest_value(const std::int8_t (&values)[16], float x) {
  int best = 0;
  for (int code = 1; code < 16; ++code)
    if (std::fabs(x - static_cast<float>(values[code])) <
        std::fabs(x - static_cast<float>(values[best])))
      best = code;
  return static_cast<std::uint8_t>(best);
}

// dot[r] = sum of value * q over 8 kChunks elements from `first` on. Byte i of a row's 4 kChunks
// holds the code of element i in its low half, of element i + 4 kChunks in its high.
template <class V, int R, int kChunks, class Activation>
[[gnu::always_inline]] inline void dot_values(const std::int8_t (&values)[16],
                                              const std::uint8_t* packed,
                                              const Activation* const* a, int first,
                                              typename V::I32* dot) {
  for (int r = 0; r < R; ++r) dot[r] = V::zero_i32();
  for (int c = 0; c < kChunks; ++c) {
    const auto bytes = V::load_bytes(packed + c * 32);
    const auto low = V::lookup(values, V::low_nibbles(bytes));
    const auto high = V::lookup(values, V::high_nibbles(bytes));
    for (int r = 0; r < R; ++r) {
      const std::int8_t* q = a[r]->q + first + 4 * c;
      dot[r] = V::dot4_s8s8(dot[r], low, V::broadcast4(q));
      dot[r] = V::dot4_s8s8(dot[r], high, V::broadcast4(q + 4 * kChunks));
    }
  }
}

}  // namespace strata
