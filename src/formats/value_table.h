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

// The values of chunk c. Byte i of the 4 kChunks bytes of 8 kChunks elements holds the code of
// element i in its low half, of element i + 4 kChunks in its high.
template <class V, int kChunks>
[[gnu::always_inline]] inline typename V::Bytes value_codes(const std::int8_t (&values)[16],
                                                            typename V::Weights w,
                                                            std::size_t packed, int c) {
  constexpr int kBoth = 2 * kChunks;
  const auto bytes = V::load_bytes(w, packed + chunk_bytes(c / kBoth * kChunks + c % kChunks));
  return V::lookup(values, c % kBoth < kChunks ? V::low_nibbles(bytes) : V::high_nibbles(bytes));
}

}  // namespace strata
