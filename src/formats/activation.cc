#include "formats/activation.h"

#include <algorithm>
#include <bit>

namespace strata {
namespace {

// Writes n quantized values and returns their scale.
float quantize(const float* x, int n, std::int8_t* q) {
  // As integers, magnitudes order like floats, with infinity and not-a-number on top.
  std::uint32_t largest_bits = 0;
  for (int i = 0; i < n; ++i)
    largest_bits = std::max(largest_bits, std::bit_cast<std::uint32_t>(x[i]) & 0x7fffffffu);
  const float largest = std::bit_cast<float>(largest_bits);
  const float inverse = largest > 0 ? 127.0f / largest : 0.0f;
  // Adding 1.5 * 2^23 rounds to an integer, which then is the low byte of the sum's bits.
  constexpr float kRounder = 0x1.8p23f;
  for (int i = 0; i < n; ++i) {
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i] * inverse + kRounder);
    q[i] = static_cast<std::int8_t>((bits - std::bit_cast<std::uint32_t>(kRounder)) & 0xffu);
  }
  return largest / 127.0f;
}

int sum_of(const std::int8_t* q, int n) {
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += q[i];
  return sum;
}

}  // namespace

void quantize_q8x32(const float* x, std::int64_t n, Q8Block32* out) {
  for (std::int64_t i = 0; i < n; i += 32, ++out) {
    out->scale = quantize(x + i, 32, out->q);
    out->scaled_sum = out->scale * static_cast<float>(sum_of(out->q, 32));
  }
}

void quantize_q8x256(const float* x, std::int64_t n, Q8Block256* out) {
  for (std::int64_t i = 0; i < n; i += 256, ++out) {
    out->scale = quantize(x + i, 256, out->q);
    for (int j = 0; j < 16; ++j)
      out->sums[j] = static_cast<std::int16_t>(sum_of(out->q + 16 * j, 16));
    for (int j = 0; j < 8; ++j)
      out->wide_sums[j] = static_cast<std::int16_t>(sum_of(out->q + 32 * j, 32));
  }
}

}  // namespace strata
