// BF16: the upper half of an f32. Activations stay f32; one fused multiply-add per element.
#pragma once

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"

namespace strata {

struct BF16 {
  static constexpr FormatId kId = FormatId::BF16;
  static constexpr int kElements = 1;
  static constexpr int kBytes = 2;
  static constexpr std::array kFields = {Field{2, 2}};
  using Activation = F32Element;

  static void decode(const std::uint8_t* block, float* out) { *out = bf16_to_f32(load_u16(block)); }
  static void encode(const float* in, std::uint8_t* block) { store_u16(block, f32_to_bf16(*in)); }

  template <class V>
  [[gnu::always_inline]] static typename V::F32 value(typename V::Weights w) {
    return V::load_bf16(w, 0);
  }
};

}  // namespace strata
