#include "formats/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace strata {
namespace {

std::vector<float> normal_values(int n, float size) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& x : out) x = size * normal(random);
  return out;
}

// Half a step, plus what rounding scale, inverse and product moves: 127 * 3 * 2^-24 steps.
template <class Block>
void expect_close(const std::vector<float>& x, const std::vector<Block>& blocks) {
  const std::size_t n = std::size(blocks[0].q);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Block& block = blocks[i / n];
    const double back = double{block.scale} * block.q[i % n];
    ASSERT_LE(std::fabs(back - x[i]), block.scale * 0.5001) << i;
  }
}

TEST(Activation, RoundsToTheNearestOf255Steps) {
  for (const float size : {1e-20f, 1.0f, 1e20f}) {
    const auto x = normal_values(1024, size);
    std::vector<Q8Block32> small(32);
    quantize_q8x32(x.data(), 1024, small.data());
    expect_close(x, small);
    std::vector<Q8Block256> large(4);
    quantize_q8x256(x.data(), 1024, large.data());
    expect_close(x, large);
  }
}

TEST(Activation, KeepsTheLargestMagnitudeAt127) {
  auto x = normal_values(32, 1.0f);
  x[9] = -50.0f;
  Q8Block32 block;
  quantize_q8x32(x.data(), 32, &block);
  EXPECT_EQ(block.q[9], -127);
  EXPECT_EQ(block.scale, 50.0f / 127.0f);
}

TEST(Activation, TiesGoToEven) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;
  x[1] = 0.5f;
  x[2] = 1.5f;
  x[3] = -2.5f;
  x[4] = -3.5f;
  Q8Block32 block;
  quantize_q8x32(x.data(), 32, &block);
  EXPECT_EQ(block.scale, 1.0f);
  EXPECT_EQ(std::vector<int>(block.q, block.q + 5), (std::vector<int>{127, 0, 2, -2, -4}));
}

TEST(Activation, SumsAreExact) {
  const auto x = normal_values(512, 1.0f);
  std::vector<Q8Block256> large(2);
  quantize_q8x256(x.data(), 512, large.data());
  for (const auto& block : large)
    for (int j = 0; j < 16; ++j) {
      int sum = 0;
      for (int i = 0; i < 16; ++i) sum += block.q[16 * j + i];
      EXPECT_EQ(block.sums[j], sum);
    }
  std::vector<Q8Block32> small(16);
  quantize_q8x32(x.data(), 512, small.data());
  for (const auto& block : small) {
    int sum = 0;
    for (const int q : block.q) sum += q;
    EXPECT_EQ(block.scaled_sum, block.scale * static_cast<float>(sum));
  }
}

TEST(Activation, ZeroAndVanishingBlocksAreZero) {
  for (const float size : {0.0f, 1e-38f, 1e-44f}) {
    auto x = std::vector<float>(256, size);
    x[1] = -size;
    x[2] = 0;
    Q8Block256 block;
    quantize_q8x256(x.data(), 256, &block);
    EXPECT_EQ(block.scale, size / 127.0f);
    EXPECT_TRUE(std::ranges::all_of(block.q, [](int q) { return q == 0; }));
  }
}

TEST(Activation, ABadValuePoisonsItsBlockAndNoOther) {
  for (const float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    auto x = normal_values(512, 1.0f);
    x[300] = bad;
    std::vector<Q8Block256> large(2);
    quantize_q8x256(x.data(), 512, large.data());
    EXPECT_TRUE(std::isfinite(large[0].scale));
    EXPECT_FALSE(std::isfinite(large[1].scale));
    std::vector<Q8Block32> small(16);
    quantize_q8x32(x.data(), 512, small.data());
    for (int i = 0; i < 16; ++i) EXPECT_EQ(std::isfinite(small[i].scale), i != 300 / 32) << i;
    EXPECT_TRUE(std::isnan(small[300 / 32].scaled_sum));
  }
}

}  // namespace
}  // namespace strata
