// Overflow-safe arithmetic for sizes and offsets that come from outside.
#pragma once

#include <concepts>
#include <optional>

namespace strata {

template <std::integral T>
std::optional<T> checked_add(T a, T b) {
  T out;
  if (__builtin_add_overflow(a, b, &out)) return std::nullopt;
  return out;
}

template <std::integral T>
std::optional<T> checked_mul(T a, T b) {
  T out;
  if (__builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

// Rounds `value` up to a multiple of `alignment`. REQUIRES: alignment is a power of two.
template <std::unsigned_integral T>
std::optional<T> checked_align_up(T value, T alignment) {
  auto bumped = checked_add<T>(value, static_cast<T>(alignment - 1));
  if (!bumped) return std::nullopt;
  return static_cast<T>(*bumped & ~static_cast<T>(alignment - 1));
}

}  // namespace strata
