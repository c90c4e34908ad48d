// Names for the numbers that pass between folders.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace strata {

using TokenId = std::int32_t;
using Position = std::int32_t;  // index of a token in its sequence, from 0
using Bytes = std::uint64_t;

// An integer that only compares and hashes with its own kind.
template <typename Tag, typename Rep = std::int32_t>
struct StrongId {
  Rep value = -1;
  auto operator<=>(const StrongId&) const = default;
  bool valid() const { return value >= 0; }
};

using BlockId = StrongId<struct BlockTag>;                      // a block of one cache pool
using SequenceId = StrongId<struct SequenceTag, std::int64_t>;  // one token sequence in the engine
using RequestId = StrongId<struct RequestTag, std::int64_t>;    // one submitted request

constexpr Bytes kKiB = 1024;
constexpr Bytes kMiB = 1024 * kKiB;
constexpr Bytes kGiB = 1024 * kMiB;

template <typename T>
constexpr T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}
template <typename T>
constexpr T round_up(T a, T b) {
  return ceil_div(a, b) * b;
}

}  // namespace strata

template <typename Tag, typename Rep>
struct std::hash<strata::StrongId<Tag, Rep>> {
  std::size_t operator()(const strata::StrongId<Tag, Rep>& id) const {
    return std::hash<Rep>()(id.value);
  }
};
