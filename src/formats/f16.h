// F16: IEEE half floats. Activations stay f32; one fused multiply-add per element.
#pragma once

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

struct F16 {
  static constexpr FormatId kId = FormatId::F16;
  static constexpr int kElements = 1;
  static constexpr int kBytes = 2;
  static constexpr std::array kFields = {Field{2, 2}};
  using Activation = F32Element;

  static void decode(const std::uint8_t* block, float* out) { *out = f16_to_f32(load_u16(block)); }
  static void encode(const float* in, std::uint8_t* block) { store_u16(block, f32_to_f16(*in)); }

  template <class V>
  [[gnu::always_inline]] static typename V::F32 value(typename V::Weights w) {
    return V::load_f16(w, 0);
  }
};

}  // namespace strata
