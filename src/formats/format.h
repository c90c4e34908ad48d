// What every weight format's file declares, and the interleaved layout kernels read.
//
// A format is a struct with
//   kId, kElements, kBytes      its name and block geometry, as in base/format_id.h
//   kFields                     the block's bytes as a list of fields, each cut into equal chunks
//   Activation                  what a row of activations is turned into before a dot product
//   decode(block, out)          one block to kElements f32, exact
//   encode(in, block)           kElements f32 to one block: plain rounding to nearest, no search.
//                               The stated error bounds hold for |in| <= 65504; with infinities or
//                               not-a-numbers in `in` the block's values are unspecified.
//   accumulate<V, R>(...)       adds one block's products for kLanes weight rows x R activation
//                               rows; a block covers one or several blocks of activations
//
// Interleaved layout. Eight weight rows form a group, so that a SIMD lane is a weight row. The
// group's block b starts at b * kLanes * kBytes and holds field after field, chunk after chunk, the
// chunk of each of the eight rows side by side. It has the size of the plain rows. The rows that
// are left over when the row count is no multiple of eight stay plain.
//
// Numerics (pinned): per block, integer products are summed exactly; then one f32 fused
// multiply-add per scale goes into the row's accumulator, blocks ascending. The order depends on
// nothing but the block index, so every vocabulary V gives the same bits.
//
// Kernels and their helpers are always inlined: they pass arrays of R lanes, which must stay in
// registers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/format_id.h"

namespace strata {

constexpr int kLanes = 8;  // weight rows of a group

struct Field {
  std::uint16_t bytes;
  std::uint16_t chunk;
};

// Byte offset of a field's first chunk in a group's block. `offset` is the field's offset in one
// row's plain block. Evaluated by the compiler alone: files built for one instruction set call it,
// and must not leave a copy for others to link.
consteval std::size_t in_group(std::size_t offset) { return offset * kLanes; }

// Activations of formats whose scale covers 32 elements.
struct Q8Block32 {
  float scale;
  float scaled_sum;  // scale * sum of q
  std::int8_t q[32];
};

// Activations of formats whose super-block covers 256 elements.
struct Q8Block256 {
  float scale;
  std::int16_t sums[16];  // of 16 consecutive q
  std::int8_t q[256];
};

// Activations of float formats: the f32 values as they are, one "block" per element.
using F32Element = float;

// How a row of activations is stored for a format.
enum class ActivationKind : std::uint8_t { kF32, kQ8x32, kQ8x256 };

template <typename Activation>
constexpr ActivationKind activation_kind() {
  if constexpr (sizeof(Activation) == sizeof(Q8Block32))
    return ActivationKind::kQ8x32;
  else if constexpr (sizeof(Activation) == sizeof(Q8Block256))
    return ActivationKind::kQ8x256;
  else
    return ActivationKind::kF32;
}

// Elements that one block of activations covers.
template <typename Activation>
consteval int activation_elements() {
  if constexpr (activation_kind<Activation>() == ActivationKind::kF32)
    return 1;
  else
    return static_cast<int>(sizeof(Activation::q));
}

// acc[r] += scale * a.scale * dot[r]
template <class V, int R, class Activation>
[[gnu::always_inline]] inline void add_scaled(typename V::F32 scale, const Activation* const* a,
                                              const typename V::I32* dot, typename V::F32* acc) {
  for (int r = 0; r < R; ++r)
    acc[r] = V::fma(V::mul(scale, V::broadcast(a[r]->scale)), V::to_f32(dot[r]), acc[r]);
}

}  // namespace strata
