// Rotary embedding of one head, over a vocabulary V.
#pragma once

#include "device/cpu/kernels/vector_math.h"

namespace strata {

template <class V>
void rotate_halves(float* x, const float* cos, const float* sin, std::int64_t pairs) {
  float* y = x + pairs;
  const auto rotate = [](auto a, auto b, auto c, auto s, auto& first, auto& second) {
    first = V::sub(V::mul(a, c), V::mul(b, s));
    second = V::add(V::mul(a, s), V::mul(b, c));
  };
  typename V::F32 first, second;
  std::int64_t i = 0;
  for (; i + 8 <= pairs; i += 8) {
    rotate(V::load(x + i), V::load(y + i), V::load(cos + i), V::load(sin + i), first, second);
    V::store(x + i, first);
    V::store(y + i, second);
  }
  const std::int64_t left = pairs - i;
  if (left == 0) return;
  rotate(load_part<V>(x + i, left), load_part<V>(y + i, left), load_part<V>(cos + i, left),
         load_part<V>(sin + i, left), first, second);
  store_part<V>(x + i, left, first);
  store_part<V>(y + i, left, second);
}

template <class V>
void rotate_adjacent(float* x, const float* cos, const float* sin, std::int64_t pairs) {
  // x cos + y (-sin) for the first of a pair, y cos + x sin for the second
  const float signs[8] = {-1, 1, -1, 1, -1, 1, -1, 1};
  const auto sign = V::load(signs);
  const auto rotate = [&](auto v, auto c, auto s) {
    return V::add(V::mul(v, c), V::mul(V::swap_pairs(v), V::mul(s, sign)));
  };
  std::int64_t i = 0;
  for (; i + 4 <= pairs; i += 4)
    V::store(x + 2 * i, rotate(V::load(x + 2 * i), V::load_twice(cos + i), V::load_twice(sin + i)));
  const std::int64_t left = pairs - i;
  if (left == 0) return;
  float c[4] = {}, s[4] = {};
  for (std::int64_t j = 0; j < left; ++j) c[j] = cos[i + j], s[j] = sin[i + j];
  store_part<V>(x + 2 * i, 2 * left,
                rotate(load_part<V>(x + 2 * i, 2 * left), V::load_twice(c), V::load_twice(s)));
}

}  // namespace strata
