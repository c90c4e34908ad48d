// TQ1_0: 256 elements, ternary codes, five or four in a byte, and an f16 scale: w = d * (code - 1).
#pragma once

#include "formats/unpacked.h"

namespace strata {

struct TQ1_0 {
  static constexpr FormatId kId = FormatId::TQ1_0;
  static constexpr int kElements = 256;
  static constexpr int kBytes = 54;
  static constexpr std::array kFields = {Field{52, 52}, Field{2, 2}};
  using Activation = Q8Block256;
  static constexpr int kFactor = 52, kCodes = 0, kCodeBytes = 52;

  // 32 bytes of five codes, 16 bytes of five, 4 bytes of four; the first codes of all the bytes of
  // a part come first. A byte is a fraction of 256 whose digits to base three are its codes, the
  // first most significant.
  template <class V>
  static void unpack(const std::uint8_t* factor, const std::uint8_t* codes, Unpacked& out) {
    out.factor = f16_to_f32(load_u16(factor));
    for (int j = 0; j < 16; ++j) out.scales[j] = 1;
    read_digits<V, 32, 5>(codes, out.codes);
    read_digits<V, 16, 5>(codes + 32, out.codes + 160);
    read_digits<V, 4, 4>(codes + 48, out.codes + 240);
  }
  static void decode(const std::uint8_t* block, float* out) { decode_unpacked<TQ1_0>(block, out); }

  // The error is at most half the largest magnitude, plus what rounding the scale to f16 moves.
  static void encode(const float* in, std::uint8_t* block) {
    const float d = largest_magnitude(in, 256);
    const float inverse = d > 0 ? 1.0f / d : 0.0f;
    write_digits<32, 5>(in, inverse, block);
    write_digits<16, 5>(in + 160, inverse, block + 32);
    write_digits<4, 4>(in + 240, inverse, block + 48);
    store_u16(block + kFactor, f32_to_f16(d));
  }

 private:
  template <class V, int kByteCount, int kDigits>
  static void read_digits(const std::uint8_t* bytes, std::int8_t* out) {
    for (int i = 0; i < kByteCount; ++i) {
      int fraction = bytes[i];
      for (int n = 0; n < kDigits; ++n, fraction = (fraction * 3) & 0xff)
        out[n * kByteCount + i] = static_cast<std::int8_t>(((fraction * 3) >> 8) - 1);
    }
  }
  template <int kByteCount, int kDigits>
  static void write_digits(const float* in, float inverse, std::uint8_t* bytes) {
    for (int i = 0; i < kByteCount; ++i) {
      int number = 0;
      for (int n = 0; n < 5; ++n)
        number = 3 * number +
                 (n < kDigits ? to_signed_code(in[n * kByteCount + i] * inverse, 1) + 1 : 0);
      bytes[i] = static_cast<std::uint8_t>((number * 256 + 242) / 243);  // rounded up
    }
  }
};

}  // namespace strata
