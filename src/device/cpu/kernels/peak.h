// What the ISA can do at most: arithmetic alone, in the inner loop of a matrix product whose
// operands lie in the first-level cache, and reading memory in order.
#pragma once

#include <cstdint>
#include <type_traits>

namespace strata {

constexpr int kPeakSteps = 64;

// The compiler must take the bytes at `p` as read and changed, so it moves no work past this.
[[gnu::always_inline]] inline void touch(const void* p) { asm volatile("" : : "r"(p) : "memory"); }

// Without this g++ computes products ahead and spills accumulators to hold them.
template <class T>
[[gnu::always_inline]] inline void keep_in_register(T& value) {
  if constexpr (!std::is_class_v<T>) {
#if defined(__x86_64__)
    asm volatile("" : "+x"(value));
#elif defined(__aarch64__)
    asm volatile("" : "+w"(value));
#endif
  }
}

// How products are summed.
template <class V, bool kSigned>
struct Sum {
  typename V::Dots value = V::zero_dots();
  void add(typename V::Bytes a, typename V::Bytes b) { value = V::add_dots(value, a, b); }
  typename V::I32 total() const { return V::widen(value); }
};
template <class V>
struct Sum<V, true> {
  typename V::I32 value = V::zero_i32();
  void add(typename V::Bytes a, typename V::Bytes b) { value = V::dot4_s8s8(value, a, b); }
  typename V::I32 total() const { return value; }
};

// Of codes without a sign that are small enough for the ISA's cheapest sums, or of signed ones.
template <class V, bool kSigned>
std::int64_t peak_int8(std::int64_t rounds) {
  // As many accumulators as hide the latency of a chain and fit sixteen registers.
  constexpr int kRows = 3;
  constexpr int kColumns = 3;
  constexpr int kBytes = sizeof(typename V::Bytes);
  alignas(64) std::uint8_t left[kRows * kBytes];
  alignas(64) std::uint8_t right[kPeakSteps * kColumns * kBytes];
  // Signs alternate, so that no sum leaves 16 bits.
  for (int i = 0; i < kRows * kBytes; ++i) left[i] = static_cast<std::uint8_t>(1 + i / kBytes);
  for (int i = 0; i < kPeakSteps * kColumns * kBytes; ++i)
    right[i] = static_cast<std::uint8_t>(i % 2 == 0 ? 1 : -1);
  auto total = V::zero_i32();
  for (std::int64_t round = 0; round < rounds; ++round) {
    touch(left);
    touch(right);
    typename V::Bytes a[kRows];
    Sum<V, kSigned> acc[kRows][kColumns];
    for (int i = 0; i < kRows; ++i) a[i] = V::load_bytes(left + i * kBytes);
    const std::uint8_t* at = right;
    for (int step = 0; step < kPeakSteps; ++step)
      for (int j = 0; j < kColumns; ++j, at += kBytes) {
        const auto b = V::load_bytes(at);
        for (int i = 0; i < kRows; ++i) {
          acc[i][j].add(a[i], b);
          keep_in_register(acc[i][j].value);
        }
      }
    for (int i = 0; i < kRows; ++i)
      for (int j = 0; j < kColumns; ++j) total = V::add_i32(total, acc[i][j].total());
  }
  const auto kept = total;
  touch(&kept);
  return rounds * kPeakSteps * kColumns * kRows * kBytes * 2;
}

template <class V>
std::int64_t peak_f32(std::int64_t rounds) {
  constexpr int kRows = 3;
  constexpr int kColumns = 4;
  constexpr int kFloats = sizeof(typename V::F32) / sizeof(float);
  alignas(64) float left[kRows * kFloats];
  alignas(64) float right[kPeakSteps * kColumns * kFloats];
  for (int i = 0; i < kPeakSteps * kColumns * kFloats; ++i) right[i] = i % 2 == 0 ? 1 : -1;
  for (int i = 0; i < kRows * kFloats; ++i) left[i] = static_cast<float>(i);
  touch(left);
  typename V::F32 a[kRows];
  typename V::F32 acc[kRows][kColumns];
  for (int i = 0; i < kRows; ++i) {
    a[i] = V::load(left + i * kFloats);
    for (int j = 0; j < kColumns; ++j) acc[i][j] = V::zero();
  }
  for (std::int64_t round = 0; round < rounds; ++round) {
    touch(right);
    const float* at = right;
    for (int step = 0; step < kPeakSteps; ++step)
      for (int j = 0; j < kColumns; ++j, at += kFloats) {
        const auto b = V::load(at);
        for (int i = 0; i < kRows; ++i) acc[i][j] = V::fma(a[i], b, acc[i][j]);
      }
  }
  typename V::F32 total = V::zero();
  for (int i = 0; i < kRows; ++i)
    for (int j = 0; j < kColumns; ++j) total = V::add(total, acc[i][j]);
  const auto kept = total;
  touch(&kept);
  return rounds * kPeakSteps * kColumns * kRows * kFloats * 2;
}

template <class V>
std::uint32_t read_words(const void* words, std::int64_t bytes) {
  constexpr int kStreams = 4;
  constexpr std::int64_t kBytes = sizeof(typename V::I32);
  const auto* at = static_cast<const std::uint8_t*>(words);
  typename V::I32 any[kStreams];
  for (auto& of : any) of = V::zero_i32();
  for (const auto* end = at + bytes; at != end; at += kStreams * kBytes)
    for (int i = 0; i < kStreams; ++i) any[i] = V::or_i32(any[i], V::load_i32(at + i * kBytes));
  for (int i = 1; i < kStreams; ++i) any[0] = V::or_i32(any[0], any[i]);
  std::int32_t lanes[kBytes / sizeof(std::int32_t)];
  V::store_i32(lanes, any[0]);
  std::uint32_t all = 0;
  for (const std::int32_t lane : lanes) all |= static_cast<std::uint32_t>(lane);
  return all;
}

}  // namespace strata
