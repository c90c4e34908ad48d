// What the formats share whose codes no lane operation reads in place: a block's rows are unpacked
// to 8-bit codes and scales, one row after the other, and multiplied from there. Such a format has
//   kFactor, kCodes, kCodeBytes    where a block keeps its f16 factor and all the rest
//   unpack<V>(factor, codes, out)  one row's block; V keeps each ISA's copy to itself
#pragma once

#include <cstring>

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

// 256 elements: w = factor * scale[i / 16] * code[i]. The formats keep
// 127 * |scale * code| * 256 below 2^31.
struct Unpacked {
  float factor;
  std::int8_t scales[16];
  std::int8_t codes[256];
};

template <class F>
void decode_unpacked(const std::uint8_t* block, float* out) {
  Unpacked u;
  F::template unpack<void>(block + F::kFactor, block + F::kCodes, u);
  for (int i = 0; i < 256; ++i)
    out[i] = u.factor * static_cast<float>(u.scales[i / 16]) * static_cast<float>(u.codes[i]);
}

}  // namespace strata
