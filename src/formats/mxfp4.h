// MXFP4: 32 elements, a power of two as scale and 4-bit floats (OCP Microscaling Formats
// specification): w = 2^(exponent - 128) * value[code], with the doubled values of value_table.h.
#pragma once

#include <algorithm>
#include <bit>

#include "formats/block32.h"
#include "formats/value_table.h"

namespace strata {

struct MXFP4 {
  static constexpr FormatId kId = FormatId::MXFP4;
  static constexpr int kElements = 32;
  static constexpr int kBytes = 17;
  static constexpr std::array kFields = {Field{1, 1}, Field{16, 4}};
  using Activation = Q8Block32;

  static void decode(const std::uint8_t* block, float* out) {
    const float scale = std::ldexp(1.0f, block[0] - 128);
    for (int i = 0; i < 32; ++i)
      out[i] = scale * static_cast<float>(kFloat4Values<void>[nibble(block + 1, i)]);
  }

  // The largest magnitude lies in [8, 16) steps, of which 12 can be stored; the largest two values
  // are 4 apart. So the error is at most a quarter of it.
  static void encode(const float* in, std::uint8_t* block) {
    const float largest = largest_magnitude(in, 32);
    const int exponent = largest > 0 ? std::clamp(std::ilogb(largest), -125, 129) + 125 : 0;
    block[0] = static_cast<std::uint8_t>(exponent);
    std::uint8_t codes[32];
    for (int i = 0; i < 32; ++i)
      codes[i] = nearest_value(kFloat4Values<void>, std::ldexp(in[i], 128 - exponent));
    pack_nibbles(codes, block + 1);
  }

  static constexpr int kPart = 32;
  static constexpr int kTopCode = kSignedCodes;
  static constexpr Offset kOffset = Offset::kNone;

  template <class V>
  [[gnu::always_inline]] static typename V::Bytes codes(typename V::Weights w, int c) {
    return value_codes<V, 4>(kFloat4Values<V>, w, in_group(1), c);
  }
  // The bits of 2^(e - 128): an exponent field from e = 2 on, one mantissa bit below.
  template <class V>
  [[gnu::always_inline]] static typename V::F32 factor(typename V::Weights w, int) {
    const auto e = V::load_u8_i32(w, 0);
    const auto normal = V::shl_i32(V::sub_i32(e, V::broadcast_i32(1)), 23);
    const auto subnormal = V::shl_i32(V::add_i32(e, V::broadcast_i32(1)), 21);
    return V::from_bits(V::max_i32(normal, subnormal));
  }
};

}  // namespace strata
