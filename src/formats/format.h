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
//
// and, for kernels written over a vocabulary V of SIMD lanes (device/cpu/simd/), each lane a weight
// row of the interleaved block w:
//   value<V>(w)                 of float formats: the weight
//   kPart                       of the others: elements that share a scale
//   kTopCode                    the largest code, or kSignedCodes
//   kOffset                     see Offset
//   codes<V>(w, c)              of chunk c, the elements 4 c .. 4 c + 3
//   factor<V>(w, part)          Q8Block32: the part's scale; w = factor * code + offset
//   offset<V>(w, part)
//   scale<V>(w, part)           Q8Block256: integers, the scale of 8 bits with a sign or, with
//                               kOwnFactor, of 6 bits without, |offset| < 2^15;
//   kZeroCode                   w = factor * scale * (code - kZeroCode), or with kOwnFactor
//   offset<V>(w, part)
//   factor<V>(w)                w = factor * scale * code - offset_factor * offset
//   offset_factor<V>(w)
// Formats whose codes no lane operation reads in place have unpack() instead (unpacked.h).
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
// What kernels call is always inlined: lanes must stay in registers.
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

// Of a chunk of eight rows, and of one byte of each.
[[gnu::always_inline]] constexpr std::size_t chunk_bytes(int chunk) {
  return static_cast<std::size_t>(chunk) * (4 * kLanes);
}
[[gnu::always_inline]] constexpr std::size_t lane_bytes(int index) {
  return static_cast<std::size_t>(index) * kLanes;
}

constexpr int kSignedCodes = -1;  // codes are bytes with a sign

// What is added to a part's products with the codes, times the sum of its activations.
enum class Offset : std::uint8_t {
  kNone,
  kAdded,      // offset(part)
  kScaled,     // -factor * scale(part) * kZeroCode
  kOwnFactor,  // -offset_factor * offset(part)
};

// Activations of formats whose scale covers 32 elements.
struct Q8Block32 {
  float scale;
  float scaled_sum;  // scale * sum of q
  std::int8_t q[32];
};

// Activations of formats whose super-block covers 256 elements.
struct Q8Block256 {
  float scale;
  std::int16_t sums[16];      // of 16 consecutive q
  std::int16_t wide_sums[8];  // of 32
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

}  // namespace strata
