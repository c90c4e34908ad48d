// Kernels that work on one row of f32, over a vocabulary V.
#pragma once

#include "device/cpu/kernels/vector_math.h"
#include "formats/format.h"

namespace strata {

template <class V>
void rms_norm(const float* x, const float* weight, float epsilon, std::int64_t n, float* out) {
  auto squares = V::zero();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto v = V::load(x + i);
    squares = V::fma(v, v, squares);
  }
  if (i < n) {
    const auto v = load_part<V>(x + i, n - i);
    squares = V::fma(v, v, squares);
  }
  const float mean = sum_lanes<V>(squares) / static_cast<float>(n);
  const auto inverse = V::broadcast(1.0f / __builtin_sqrtf(mean + epsilon));
  if (weight == nullptr)
    map2<V>(x, x, n, out, [&](auto a, auto) { return V::mul(a, inverse); });
  else
    map2<V>(x, weight, n, out, [&](auto a, auto w) { return V::mul(V::mul(a, inverse), w); });
}

template <class V>
void layer_norm(const float* x, const float* weight, const float* bias, float epsilon,
                std::int64_t n, float* out) {
  auto sums = V::zero();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) sums = V::add(sums, V::load(x + i));
  if (i < n) sums = V::add(sums, load_part<V>(x + i, n - i));
  const auto mean = V::broadcast(sum_lanes<V>(sums) / static_cast<float>(n));
  map2<V>(x, x, n, out, [&](auto a, auto) { return V::sub(a, mean); });
  rms_norm<V>(out, weight, epsilon, n, out);
  map2<V>(out, bias, n, out, [](auto a, auto b) { return V::add(a, b); });
}

template <class V>
void gate_silu(const float* gate, const float* up, std::int64_t n, float* out) {
  map2<V>(gate, up, n, out, [](auto g, auto u) { return V::mul(V::mul(g, sigmoid<V>(g)), u); });
}

// 0.5 g (1 + tanh(z)) = g * sigmoid(2 z) with z = sqrt(2 / pi) (g + 0.044715 g^3)
template <class V>
void gate_gelu_tanh(const float* gate, const float* up, std::int64_t n, float* out) {
  map2<V>(gate, up, n, out, [](auto g, auto u) {
    const auto inner = V::fma(V::mul(V::broadcast(0.044715f), V::mul(g, g)), g, g);
    const auto z2 = V::mul(V::broadcast(1.59576912160573f), inner);
    return V::mul(V::mul(g, sigmoid<V>(z2)), u);
  });
}

template <class V>
void gate_sigmoid(const float* gate, const float* up, std::int64_t n, float* out) {
  map2<V>(gate, up, n, out, [](auto g, auto u) { return V::mul(sigmoid<V>(g), u); });
}

// The operand order lets a NaN through.
template <class V>
void gate_clamped_swiglu(const float* gate, const float* up, std::int64_t n, float* out) {
  map2<V>(gate, up, n, out, [](auto g, auto u) {
    const auto limit = V::broadcast(7.0f);
    const auto x = V::min(limit, g);
    const auto linear = V::max(V::broadcast(-7.0f), V::min(limit, u));
    const auto swish = V::mul(x, sigmoid<V>(V::mul(V::broadcast(1.702f), x)));
    return V::mul(swish, V::add(linear, V::broadcast(1.0f)));
  });
}

template <class V>
void multiply(const float* a, const float* b, std::int64_t n, float* out) {
  map2<V>(a, b, n, out, [](auto x, auto y) { return V::mul(x, y); });
}

template <class V>
void softcap(float* x, float cap, std::int64_t n) {
  const auto top = V::broadcast(cap);
  map2<V>(x, x, n, x, [&](auto a, auto) { return V::mul(top, tanh<V>(V::div(a, top))); });
}

template <class V>
void scaled_add(float a, const float* x, std::int64_t n, float* y) {
  const auto factor = V::broadcast(a);
  map2<V>(x, y, n, y, [&](auto v, auto sum) { return V::fma(factor, v, sum); });
}

// Eight values as 8-bit codes: round to nearest even of x * inverse. Adding 1.5 * 2^23 rounds, and
// the low bits of the sum hold the integer; a NaN gives some code, but its block's scale is NaN.
template <class V>
typename V::I32 codes_of(const float* x, typename V::F32 inverse) {
  const auto shifted = V::add(V::mul(V::load(x), inverse), V::broadcast(12582912.0f));
  return V::sub_i32(V::bits(shifted), V::broadcast_i32(0x4b400000));
}

// The largest magnitude of n values, NaN if any is: magnitudes order like their bits.
template <class V>
float largest_magnitude(const float* x, int n) {
  auto most = V::zero_i32();
  for (int i = 0; i < n; i += 8)
    most = V::max_i32(most, V::and_i32(V::bits(V::load(x + i)), 0x7fffffff));
  std::int32_t lanes[8];
  V::store_i32(lanes, most);
  std::int32_t top = 0;
  for (const std::int32_t lane : lanes) top = lane > top ? lane : top;
  return __builtin_bit_cast(float, top);
}

// 127 / top, 0 where that is no finite number: such blocks are all 0, or their scale says it.
template <class V>
float inverse_scale(float top) {
  const float inverse = 127.0f / top;
  return inverse <= 3.402823466e38f ? inverse : 0.0f;
}

template <class V>
std::int32_t sum_of(typename V::I32 a) {
  std::int32_t lanes[8];
  V::store_i32(lanes, a);
  std::int32_t sum = 0;
  for (const std::int32_t lane : lanes) sum += lane;
  return sum;
}

template <class V>
void quantize_q8x32(const float* x, std::int64_t n, void* out) {
  auto* block = static_cast<Q8Block32*>(out);
  for (std::int64_t b = 0; b < n / 32; ++b, ++block, x += 32) {
    const float top = largest_magnitude<V>(x, 32);
    block->scale = top / 127.0f;
    const auto inverse = V::broadcast(inverse_scale<V>(top));
    auto sums = V::zero_i32();
    for (int i = 0; i < 32; i += 8) {
      const auto codes = codes_of<V>(x + i, inverse);
      V::store_low_bytes(block->q + i, codes);
      sums = V::add_i32(sums, codes);
    }
    block->scaled_sum = block->scale * static_cast<float>(sum_of<V>(sums));
  }
}

template <class V>
void quantize_q8x256(const float* x, std::int64_t n, void* out) {
  auto* block = static_cast<Q8Block256*>(out);
  for (std::int64_t b = 0; b < n / 256; ++b, ++block, x += 256) {
    const float top = largest_magnitude<V>(x, 256);
    block->scale = top / 127.0f;
    const auto inverse = V::broadcast(inverse_scale<V>(top));
    for (int j = 0; j < 16; ++j) {
      const auto low = codes_of<V>(x + 16 * j, inverse);
      const auto high = codes_of<V>(x + 16 * j + 8, inverse);
      V::store_low_bytes(block->q + 16 * j, low);
      V::store_low_bytes(block->q + 16 * j + 8, high);
      block->sums[j] = static_cast<std::int16_t>(sum_of<V>(V::add_i32(low, high)));
    }
    for (int j = 0; j < 8; ++j)
      block->wide_sums[j] = static_cast<std::int16_t>(block->sums[2 * j] + block->sums[2 * j + 1]);
  }
}

}  // namespace strata
