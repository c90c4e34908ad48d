// TQ2_0: 256 elements, ternary codes of two bits and an f16 scale: w = d * (code - 1).
#pragma once

#include "base/half.h"
#include "formats/bytes.h"
#include "formats/format.h"
#include "formats/two_bits.h"

namespace strata {

struct TQ2_0 {
  static constexpr FormatId kId = FormatId::TQ2_0;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 66;
  static constexpr std::array kFields = {Field{64, 4}, Field{2, 2}};
  using Activation = Q8Block256;

  static void decode(const std::uint8_t* block, float* out) {
    const float d = f16_to_f32(load_u16(block + kFactor));
    for (int i = 0; i < 256; ++i) out[i] = d * static_cast<float>(two_bits(block, i) - 1);
  }

  // The error is at most half the largest magnitude, plus what rounding the scale to f16 moves.
  static void encode(const float* in, std::uint8_t* block) {
    const float d = largest_magnitude(in, 256);
    const float inverse = d > 0 ? 1.0f / d : 0.0f;
    int codes[256];
    for (int i = 0; i < 256; ++i) codes[i] = to_signed_code(in[i] * inverse, 1) + 1;
    pack_two_bits(codes, block);
    store_u16(block + kFactor, f32_to_f16(d));
  }

  // 32 pairs of products of a half add up to at most 32 * 2 * 3 * 127 < 2^15.
  template <class V, int R>
  [[gnu::always_inline]] static void accumulate(const std::uint8_t* w, const Activation* const* a,
                                                typename V::F32* acc) {
    typename V::I32 total[R];
    for (int r = 0; r < R; ++r) {
      int sum = 0;
      for (int j = 0; j < 16; ++j) sum += a[r]->sums[j];
      total[r] = V::broadcast_i32(-sum);
    }
    for (int half = 0; half < 2; ++half) {
      typename V::Dots dot[R];
      for (int r = 0; r < R; ++r) dot[r] = V::zero_dots();
      for (int c = 0; c < 8; ++c) {
        const auto bytes = V::load_bytes(w + (half * 8 + c) * 32);
        add_quarter<V, R, 0>(bytes, half * 128 + 4 * c, a, dot);
        add_quarter<V, R, 1>(bytes, half * 128 + 4 * c, a, dot);
        add_quarter<V, R, 2>(bytes, half * 128 + 4 * c, a, dot);
        add_quarter<V, R, 3>(bytes, half * 128 + 4 * c, a, dot);
      }
      for (int r = 0; r < R; ++r) total[r] = V::add_i32(total[r], V::widen(dot[r]));
    }
    add_scaled<V, R>(V::load_f16(w + in_group(kFactor)), a, total, acc);
  }

 private:
  static constexpr int kFactor = 64;

  template <class V, int R, int kQuarter>
  [[gnu::always_inline]] static void add_quarter(typename V::Bytes bytes, int first,
                                                 const Activation* const* a,
                                                 typename V::Dots* dot) {
    const auto codes = V::template bit_field<2 * kQuarter, 3, 0>(bytes);
    for (int r = 0; r < R; ++r)
      dot[r] = V::add_dots(dot[r], codes, V::broadcast4(a[r]->q + first + 32 * kQuarter));
  }
};

}  // namespace strata
