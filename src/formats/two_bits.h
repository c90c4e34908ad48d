// What the formats share that pack 256 codes of two bits: each half of 128 elements has 32 bytes,
// whose bit pairs are its four quarters, the first quarter lowest.
#pragma once

#include <cstdint>

#include "formats/format.h"

namespace strata {

inline int two_bits(const std::uint8_t* packed, int i) {
  return (packed[i / 128 * 32 + i % 32] >> (i / 32 % 4 * 2)) & 3;
}

// Packs the low two bits of each code.
template <class Code>
void pack_two_bits(const Code* codes, std::uint8_t* packed) {
  for (int i = 0; i < 64; ++i) {
    const Code* first = codes + i / 32 * 128 + i % 32;
    packed[i] = static_cast<std::uint8_t>((first[0] & 3) | (first[32] & 3) << 2 |
                                          (first[64] & 3) << 4 | (first[96] & 3) << 6);
  }
}

template <class V>
[[gnu::always_inline]] inline typename V::Bytes two_bit_codes(typename V::Weights w,
                                                              std::size_t packed, int c) {
  const auto bytes = V::load_bytes(w, packed + chunk_bytes(c / 32 * 8 + c % 8));
  return V::bit_field(bytes, c / 8 % 4 * 2, 3, 0);
}

}  // namespace strata
