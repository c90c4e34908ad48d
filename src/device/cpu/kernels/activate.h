// Functions of one value, over a vocabulary V.
#pragma once

#include "device/cpu/kernels/vector_math.h"

namespace strata {

template <class V>
typename V::F32 silu(typename V::F32 x) {
  return V::mul(x, sigmoid<V>(x));
}

template <class V>
typename V::F32 relu_squared(typename V::F32 x) {
  const auto positive = V::max(V::zero(), x);
  return V::mul(positive, positive);
}

// x = function(x + bias); null: without bias
template <class V, typename V::F32 (*function)(typename V::F32)>
void activate(float* x, const float* bias, std::int64_t n) {
  if (bias == nullptr)
    map2<V>(x, x, n, x, [](auto a, auto) { return function(a); });
  else
    map2<V>(x, bias, n, x, [](auto a, auto b) { return function(V::add(a, b)); });
}

}  // namespace strata
