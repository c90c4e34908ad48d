// What the formats share whose codes are points of a codebook: small vectors of values, looked up
// by index, and signs kept apart. points.h has the points.
#pragma once

#include <algorithm>
#include <cstddef>

#include "formats/points.h"
#include "formats/unpacked.h"

namespace strata {

template <int kSize, std::size_t kCount>
struct Codebook {
  std::int8_t points[kCount][kSize];
};

// Points whose elements are the packed indices into `values`.
template <int kSize, std::size_t kCount, std::size_t kValues>
consteval Codebook<kSize, kCount> spell_out(const std::uint16_t (&packed)[kCount],
                                            const std::int8_t (&values)[kValues]) {
  constexpr int kBits = 16 / kSize;
  Codebook<kSize, kCount> book{};
  for (std::size_t p = 0; p < kCount; ++p)
    for (int i = 0; i < kSize; ++i)
      book.points[p][i] = values[(packed[p] >> (kBits * i)) & ((1 << kBits) - 1)];
  return book;
}

// V keeps each ISA's copy of a codebook to itself.
template <class V>
inline constexpr auto kIq2XxsBook = spell_out<8>(kIq2XxsPoints, {8, 25, 43});
template <class V>
inline constexpr auto kIq2XsBook = spell_out<8>(kIq2XsPoints, {8, 25, 43});
template <class V>
inline constexpr auto kIq2SBook = spell_out<8>(kIq2SPoints, {8, 25, 43});
template <class V>
inline constexpr auto kIq3XxsBook = spell_out<4>(kIq3XxsPoints, {4, 12, 20, 28, 36, 44, 52, 62});
template <class V>
inline constexpr auto kIq3SBook = spell_out<4>(kIq3SPoints, {1, 3, 5, 7, 9, 11, 13, 15});
// Eight times the published values -1, 0 and 1, which are shifted by an eighth up or down.
template <class V>
inline constexpr auto kIq1Book = spell_out<8>(kIq1Points, {-8, 0, 8});

// The signs of eight elements out of seven stored bits: an even number of them is negative.
[[gnu::always_inline]] inline unsigned even_signs(unsigned seven) {
  unsigned parity = seven ^ (seven >> 4);
  parity ^= parity >> 2;
  parity ^= parity >> 1;
  return seven | (parity & 1) << 7;
}

// Writes a point, negative where its element's bit in `signs` is set.
template <class V, int kSize>
void put_point(const std::int8_t (&point)[kSize], unsigned signs, std::int8_t* out) {
  for (int i = 0; i < kSize; ++i)
    out[i] = static_cast<std::int8_t>(((signs >> i) & 1) != 0 ? -point[i] : point[i]);
}

// Writes a point of IQ1_S or IQ1_M, shifted.
template <class V>
void put_shifted(unsigned index, bool down, std::int8_t* out) {
  for (int i = 0; i < 8; ++i)
    out[i] = static_cast<std::int8_t>(kIq1Book<V>.points[index][i] + (down ? -1 : 1));
}

// Encoding: the block's largest magnitude becomes `top` codes at the largest scale; a part's scale
// follows from its own largest magnitude, and each small vector becomes the nearest point.

// Scales are odd, 2 s + 1 for a stored s of 0..kTopScale. Writes the f16 factor and returns it
// times `unit`, for w = factor * unit * scale * code.
template <int kTopScale>
float encode_factor(const float* in, float unit, int top, std::uint8_t* factor) {
  const float steps = unit * static_cast<float>((2 * kTopScale + 1) * top);
  store_u16(factor, f32_to_f16(largest_magnitude(in, 256) / steps));
  return f16_to_f32(load_u16(factor)) * unit;
}
template <int kTopScale>
int odd_scale_code(const float* in, int n, float unit, int top) {
  const float wanted = largest_magnitude(in, n) / (unit * static_cast<float>(top));
  return to_code((wanted - 1) / 2, kTopScale);
}

// Eight elements in units of `step`, their signs apart.
struct SignedVector {
  float magnitudes[8];
  unsigned signs = 0;
};
inline SignedVector split_signs(const float* in, float step) {
  SignedVector out;
  for (int i = 0; i < 8; ++i) {
    out.magnitudes[i] = step > 0 ? std::fabs(in[i]) / step : 0.0f;
    out.signs |= (in[i] < 0 ? 1u : 0u) << i;
  }
  return out;
}
// As split_signs; the smallest element changes sides where the number of signs is odd.
inline SignedVector split_even_signs(const float* in, float step) {
  SignedVector out = split_signs(in, step);
  if (out.signs == even_signs(out.signs & 127)) return out;
  int least = 0;
  for (int i = 1; i < 8; ++i)
    if (out.magnitudes[i] < out.magnitudes[least]) least = i;
  out.magnitudes[least] = -out.magnitudes[least];
  out.signs ^= 1u << least;
  return out;
}

struct NearestPoint {
  int index = 0;
  float error = 0;  // squared
};
template <int kSize, std::size_t kCount>
NearestPoint nearest_point(const Codebook<kSize, kCount>& book, const float* in) {
  NearestPoint best;
  for (int p = 0; p < static_cast<int>(kCount); ++p) {
    float error = 0;
    for (int i = 0; i < kSize; ++i) {
      const float apart = in[i] - static_cast<float>(book.points[p][i]);
      error += apart * apart;
    }
    if (p == 0 || error < best.error) best = {p, error};
  }
  return best;
}

// The nearest shifted point to eight elements in units of `step`.
inline NearestPoint nearest_shifted(const float* in, float step, bool down) {
  float wanted[8];
  for (int i = 0; i < 8; ++i) wanted[i] = (step > 0 ? in[i] / step : 0.0f) + (down ? 1.0f : -1.0f);
  return nearest_point(kIq1Book<void>, wanted);
}

}  // namespace strata
