// exp and the functions built on it, over a vocabulary V.
#pragma once

#include <cstdint>

namespace strata {

// e^x, relative error below 2e-7 for x in [-87.3, 88]; clamped to the ends outside, NaN stays NaN.
// Cephes' expf: Cody-Waite reduction by ln 2, then a polynomial of degree 7.
template <class V>
typename V::F32 exp(typename V::F32 x) {
  using F32 = typename V::F32;
  // The operand order lets a NaN through.
  x = V::min(V::broadcast(88.0f), V::max(V::broadcast(-87.3f), x));
  const F32 magic = V::broadcast(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const F32 shifted = V::fma(x, V::broadcast(1.44269504088896341f), magic);
  const F32 n = V::sub(shifted, magic);
  F32 r = V::fma(n, V::broadcast(-0.693359375f), x);
  r = V::fma(n, V::broadcast(2.12194440e-4f), r);
  F32 p = V::broadcast(1.9875691500e-4f);
  p = V::fma(p, r, V::broadcast(1.3981999507e-3f));
  p = V::fma(p, r, V::broadcast(8.3334519073e-3f));
  p = V::fma(p, r, V::broadcast(4.1665795894e-2f));
  p = V::fma(p, r, V::broadcast(1.6666665459e-1f));
  p = V::fma(p, r, V::broadcast(5.0000001201e-1f));
  const F32 y = V::add(V::fma(p, V::mul(r, r), r), V::broadcast(1.0f));
  // The low bits of `shifted` hold n.
  const auto exponent =
      V::shl_i32(V::sub_i32(V::bits(shifted), V::broadcast_i32(0x4b400000 - 127)), 23);
  return V::mul(y, V::from_bits(exponent));
}

// 1 / (1 + e^-x)
template <class V>
typename V::F32 sigmoid(typename V::F32 x) {
  const auto one = V::broadcast(1.0f);
  return V::div(one, V::add(one, exp<V>(V::sub(V::zero(), x))));
}

// 1 - 2 / (1 + e^2x); absolute error below 1e-6
template <class V>
typename V::F32 tanh(typename V::F32 x) {
  const auto one = V::broadcast(1.0f);
  const auto e = exp<V>(V::add(x, x));
  return V::sub(one, V::div(V::broadcast(2.0f), V::add(one, e)));
}

// ln(1 + e^x) = max(x, 0) + ln(1 + u) with u = e^-|x|, relative error below 1e-6 for x > -87.
// ln(1 + u) = 2 (s + s^3 / 3 + ... + s^15 / 15) with s = u / (2 + u), which is at most 1/3.
template <class V>
typename V::F32 softplus(typename V::F32 x) {
  // The operand order lets a NaN through.
  const auto u = exp<V>(V::min(V::sub(V::zero(), x), x));
  const auto s = V::div(u, V::add(V::broadcast(2.0f), u));
  const auto s2 = V::mul(s, s);
  const float factors[] = {2.0f / 13, 2.0f / 11, 2.0f / 9, 2.0f / 7, 2.0f / 5, 2.0f / 3, 2.0f};
  auto sum = V::broadcast(2.0f / 15);
  for (const float factor : factors) sum = V::fma(sum, s2, V::broadcast(factor));
  return V::fma(sum, s, V::max(V::zero(), x));
}

// x (1 + erf(x / sqrt(2))) / 2 = max(x, 0) - |x| q(|x|), error below 3e-7 |x|. q(t) is the normal
// distribution's upper tail, e^(-t^2 / 2) s P(s) with s = 1 / (1 + t / 4); the coefficients of P
// make the largest relative error for t <= 14 least, which is 6e-8.
template <class V>
typename V::F32 gelu(typename V::F32 x) {
  const auto one = V::broadcast(1.0f);
  // The operand orders let a NaN through. At 14 and beyond the tail vanishes beside any |x|.
  const auto t = V::min(V::broadcast(14.0f), V::max(V::sub(V::zero(), x), x));
  const auto s = V::div(one, V::fma(V::broadcast(0.25f), t, one));
  const float factors[] = {-0.15280881f, 0.29612088f, -0.20578229f, 0.2017578f,
                           0.032928032f, 0.10374668f, 0.098516844f, 0.09979748f};
  auto sum = V::broadcast(0.025723372f);
  for (const float factor : factors) sum = V::fma(sum, s, V::broadcast(factor));
  const auto decay = exp<V>(V::mul(V::broadcast(-0.5f), V::mul(t, t)));
  return V::sub(V::max(V::zero(), x), V::mul(V::mul(t, decay), V::mul(sum, s)));
}

// The sum of eight lanes in one fixed order.
template <class V>
float sum_lanes(typename V::F32 a) {
  float v[8];
  V::store(v, a);
  return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
}

// The first n < 8 floats, zeros behind them.
template <class V>
typename V::F32 load_part(const float* p, std::int64_t n) {
  float v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
  for (std::int64_t i = 0; i < n; ++i) v[i] = p[i];
  return V::load(v);
}
template <class V>
void store_part(float* p, std::int64_t n, typename V::F32 a) {
  float v[8];
  V::store(v, a);
  for (std::int64_t i = 0; i < n; ++i) p[i] = v[i];
}

// Applies f(lanes of a, lanes of b) to n elements.
template <class V, class F>
void map2(const float* a, const float* b, std::int64_t n, float* out, F f) {
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) V::store(out + i, f(V::load(a + i), V::load(b + i)));
  if (i < n)
    store_part<V>(out + i, n - i, f(load_part<V>(a + i, n - i), load_part<V>(b + i, n - i)));
}

}  // namespace strata
