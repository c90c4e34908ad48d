// F32: plain floats. Activations stay f32; one fused multiply-add per element.
#pragma once

#include <cstring>

#include "formats/format.h"

namespace strata {

struct F32 {
  static constexpr FormatId kId = FormatId::F32;
  static constexpr int kElements = 1;
  static constexpr int kBytes = 4;
  static constexpr std::array kFields = {Field{4, 4}};
  using Activation = F32Element;

  static void decode(const std::uint8_t* block, float* out) { std::memcpy(out, block, kBytes); }
  static void encode(const float* in, std::uint8_t* block) { std::memcpy(block, in, kBytes); }

  template <class V>
  [[gnu::always_inline]] static typename V::F32 value(typename V::Weights w) {
    return V::from_bits(V::load_i32(w, 0));
  }
};

}  // namespace strata
