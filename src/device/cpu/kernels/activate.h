// Functions of one value, over a vocabulary V.
#pragma once

#include "device/cpu/kernels/vector_math.h"

namespace strata {
namespace {

struct Silu {
  template <class V>
  static typename V::F32 apply(typename V::F32 x) {
    return V::mul(x, sigmoid<V>(x));
  }
};
struct Sigmoid {
  template <class V>
  static typename V::F32 apply(typename V::F32 x) {
    return sigmoid<V>(x);
  }
};
struct Tanh {
  template <class V>
  static typename V::F32 apply(typename V::F32 x) {
    return tanh<V>(x);
  }
};
struct ReluSquared {
  template <class V>
  static typename V::F32 apply(typename V::F32 x) {
    const auto positive = V::max(V::zero(), x);
    return V::mul(positive, positive);
  }
};
struct Softplus {
  template <class V>
  static typename V::F32 apply(typename V::F32 x) {
    return softplus<V>(x);
  }
};
struct Gelu {
  template <class V>
  static typename V::F32 apply(typename V::F32 x) {
    return gelu<V>(x);
  }
};

}  // namespace

template <class V, class Function>
void activate(float* x, const float* bias, std::int64_t n) {
  if (bias == nullptr)
    map2<V>(x, x, n, x, [](auto a, auto) { return Function::template apply<V>(a); });
  else
    map2<V>(x, bias, n, x,
            [](auto a, auto b) { return Function::template apply<V>(V::add(a, b)); });
}

}  // namespace strata
