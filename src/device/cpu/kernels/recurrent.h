// Steps of recurrent states, over a vocabulary V. A lane is an element of one row of a state.
#pragma once

#include "device/cpu/kernels/vector_math.h"

namespace strata {

template <class V>
void exp_scaled(float a, const float* x, std::int64_t n, float* out) {
  const auto factor = V::broadcast(a);
  map2<V>(x, x, n, out, [&](auto v, auto) { return exp<V>(V::mul(factor, v)); });
}

template <class V>
float dot(const float* a, const float* b, std::int64_t n) {
  auto sum = V::zero();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) sum = V::fma(V::load(a + i), V::load(b + i), sum);
  if (i < n) sum = V::fma(load_part<V>(a + i, n - i), load_part<V>(b + i, n - i), sum);
  return sum_lanes<V>(sum);
}

template <class V>
float state_step(float* s, const float* decay, float u, const float* b, const float* c,
                 std::int64_t n) {
  const auto factor = V::broadcast(u);
  auto sum = V::zero();
  std::int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const auto next = V::fma(V::load(s + i), V::load(decay + i), V::mul(factor, V::load(b + i)));
    V::store(s + i, next);
    sum = V::fma(next, V::load(c + i), sum);
  }
  if (i < n) {
    const auto next = V::fma(load_part<V>(s + i, n - i), load_part<V>(decay + i, n - i),
                             V::mul(factor, load_part<V>(b + i, n - i)));
    store_part<V>(s + i, n - i, next);
    sum = V::fma(next, load_part<V>(c + i, n - i), sum);
  }
  return sum_lanes<V>(sum);
}

}  // namespace strata
