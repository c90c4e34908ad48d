// What a cache holds of keys and values, over a vocabulary V: how elements are read, and how those
// of one token are written. cache_layout.h says where they lie.
#pragma once

#include <cstring>

#include "device/cpu/kernels.h"
#include "device/cpu/kernels/rows.h"

namespace strata {

constexpr int kCacheBlockTokens = 32;
constexpr int kCacheGroup = 32;  // elements that are written together, and may share a scale

// A scheme names its Element and itself over another vocabulary; load() reads a vector of elements
// as they stand, encode() writes a group, and where elements are `kScaled` returns the scale that
// multiplies them, an f16.
template <class V>
struct CacheF32 {
  template <class U>
  using Over = CacheF32<U>;
  using Element = float;
  static constexpr bool kScaled = false;
  static typename V::F32 load(const std::uint8_t* p) {
    return V::load(reinterpret_cast<const float*>(p));
  }
  static std::uint16_t encode(const float* x, Element* out) {
    std::memcpy(out, x, kCacheGroup * sizeof(float));
    return 0;
  }
};

template <class V>
struct CacheF16 {
  template <class U>
  using Over = CacheF16<U>;
  using Element = std::uint16_t;
  static constexpr bool kScaled = false;
  static typename V::F32 load(const std::uint8_t* p) { return V::load_f16(p); }
  static std::uint16_t encode(const float* x, Element* out) {
    for (int i = 0; i < kCacheGroup; i += 8) V::store_f16(out + i, V::load(x + i));
    return 0;
  }
};

// Codes of 8 bits; the largest magnitude of a group is 127 times its scale, as in Q8_0.
template <class V>
struct CacheQ8 {
  template <class U>
  using Over = CacheQ8<U>;
  using Element = std::int8_t;
  static constexpr bool kScaled = true;
  static typename V::F32 load(const std::uint8_t* p) { return V::to_f32(V::load_s8_i32(p, 0)); }
  static std::uint16_t encode(const float* x, Element* out) {
    const float top = largest_magnitude<V>(x, kCacheGroup);
    const auto inverse = V::broadcast(inverse_scale<V>(top));
    for (int i = 0; i < kCacheGroup; i += 8)
      V::store_low_bytes(out + i, codes_of<V>(x + i, inverse));
    std::uint16_t scales[8];
    V::store_f16(scales, V::broadcast(top / 127.0f));
    return scales[0];
  }
};

// Calls put(first element, elements, their codes, scale) for each group of n elements; the codes
// behind the last element are those of zeros.
template <class E, class F>
void each_encoded_group(const float* x, std::int64_t n, F put) {
  for (std::int64_t i = 0; i < n; i += kCacheGroup) {
    const std::int64_t count = n - i < kCacheGroup ? n - i : kCacheGroup;
    float part[kCacheGroup] = {};
    std::memcpy(part, x + i, static_cast<std::size_t>(count) * sizeof(float));
    typename E::Element codes[kCacheGroup];
    const std::uint16_t scale = E::encode(part, codes);
    put(i, count, codes, scale);
  }
}

// Scales lie behind the elements as [group][token].
[[gnu::always_inline]] inline void store_scale(std::uint8_t* scales, std::int64_t first, int token,
                                               std::uint16_t scale) {
  std::memcpy(scales + (first / kCacheGroup * kCacheBlockTokens + token) * 2, &scale, 2);
}

// A token's n elements of one head into a block's keys.
template <class E>
void store_keys(const float* x, std::int64_t n, int token, std::uint8_t* keys) {
  constexpr int kBytes = sizeof(typename E::Element);
  each_encoded_group<E>(
      x, n, [&](std::int64_t first, std::int64_t count, const auto* codes, std::uint16_t scale) {
        for (std::int64_t i = 0; i < count; ++i)
          std::memcpy(keys + ((first + i) * kCacheBlockTokens + token) * kBytes, codes + i, kBytes);
        if constexpr (E::kScaled)
          store_scale(keys + n * kCacheBlockTokens * kBytes, first, token, scale);
      });
}

// Likewise into its values.
template <class E>
void store_values(const float* x, std::int64_t n, int token, std::uint8_t* values) {
  constexpr int kBytes = sizeof(typename E::Element);
  const std::int64_t padded = padded_value_size(n);
  each_encoded_group<E>(
      x, n, [&](std::int64_t first, std::int64_t count, const auto* codes, std::uint16_t scale) {
        std::memcpy(values + (token * padded + first) * kBytes, codes,
                    static_cast<std::size_t>(padded_value_size(count)) * kBytes);
        if constexpr (E::kScaled)
          store_scale(values + padded * kCacheBlockTokens * kBytes, first, token, scale);
      });
}

}  // namespace strata
