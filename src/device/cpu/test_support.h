// What the tests of kernels and operations share.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "device/cpu/isa_select.h"
#include "device/cpu/kernels.h"

namespace strata::testing {

// Normally distributed, the same for a seed.
inline std::vector<float> noise(std::int64_t n, std::uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = normal(random);
  return out;
}

inline std::vector<const KernelTable*> all_kernels() {
  std::vector<const KernelTable*> tables;
  for (const Isa isa : runnable_isas()) tables.push_back(*select_kernels(isa));
  return tables;
}

inline void expect_same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(std::bit_cast<std::uint32_t>(a[i]), std::bit_cast<std::uint32_t>(b[i])) << "at " << i;
}

}  // namespace strata::testing
