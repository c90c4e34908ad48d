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

// Eight rows, chunk after chunk of four codes, the rows side by side.
struct UnpackedGroup {
  alignas(32) std::int8_t codes[64][kLanes * 4];
  std::uint8_t scales[16][kLanes];
  float factors[kLanes];
};

template <class F>
void decode_unpacked(const std::uint8_t* block, float* out) {
  Unpacked u;
  F::template unpack<void>(block + F::kFactor, block + F::kCodes, u);
  for (int i = 0; i < 256; ++i)
    out[i] = u.factor * static_cast<float>(u.scales[i / 16]) * static_cast<float>(u.codes[i]);
}

template <class V, class F>
void unpack_group(const std::uint8_t* w, UnpackedGroup& group) {
  for (int lane = 0; lane < kLanes; ++lane) {
    Unpacked u;
    F::template unpack<V>(w + in_group(F::kFactor) + lane * 2,
                          w + in_group(F::kCodes) + lane * F::kCodeBytes, u);
    group.factors[lane] = u.factor;
    for (int j = 0; j < 16; ++j) group.scales[j][lane] = static_cast<std::uint8_t>(u.scales[j]);
    for (int c = 0; c < 64; ++c) std::memcpy(group.codes[c] + 4 * lane, u.codes + 4 * c, 4);
  }
}

template <class V, class F, int R>
[[gnu::always_inline]] inline void accumulate_unpacked(const std::uint8_t* w,
                                                       const Q8Block256* const* a,
                                                       typename V::F32* acc) {
  UnpackedGroup group;
  unpack_group<V, F>(w, group);
  typename V::I32 total[R];
  for (int r = 0; r < R; ++r) total[r] = V::zero_i32();
  for (int j = 0; j < 16; ++j) {
    typename V::I32 dot[R];
    for (int r = 0; r < R; ++r) dot[r] = V::zero_i32();
    for (int c = 4 * j; c < 4 * j + 4; ++c) {
      const auto codes = V::load_bytes(group.codes[c]);
      for (int r = 0; r < R; ++r)
        dot[r] = V::dot4_s8s8(dot[r], codes, V::broadcast4(a[r]->q + 4 * c));
    }
    const auto scale = V::load_u8_i32(group.scales[j]);
    for (int r = 0; r < R; ++r) total[r] = V::add_i32(total[r], V::mul_i32(scale, dot[r]));
  }
  add_scaled<V, R>(V::load(group.factors), a, total, acc);
}

}  // namespace strata
