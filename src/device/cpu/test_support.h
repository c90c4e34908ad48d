// What the tests of kernels and operations share.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace strata::testing {

// Normally distributed, the same for a seed.
inline std::vector<float> noise(std::int64_t n, std::uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = normal(random);
  return out;
}

}  // namespace strata::testing
