#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace strata {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Nothing filtered, temperature 1.
SamplingParams open_params() {
  SamplingParams params;
  params.temperature = 1;
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  return params;
}

TokenId sample_one(const std::vector<float>& logits, const SamplingParams& params,
                   const std::vector<TokenId>& history = {}, RandomKey key = {}) {
  Sampler sampler;
  const auto token = sampler.sample(logits, params, history, key);
  EXPECT_TRUE(token.ok()) << token.status().message();
  return token.ok() ? *token : -1;
}

// The tokens that turn up in many draws.
std::map<TokenId, int> draws(const std::vector<float>& logits, const SamplingParams& params,
                             int count = 4000) {
  Sampler sampler;
  std::map<TokenId, int> seen;
  for (int i = 0; i < count; ++i)
    ++seen[*sampler.sample(logits, params, {}, {params.seed, 0, static_cast<std::uint32_t>(i)})];
  return seen;
}

std::vector<TokenId> tokens_of(const std::map<TokenId, int>& seen) {
  std::vector<TokenId> tokens;
  for (const auto& [token, count] : seen) tokens.push_back(token);
  return tokens;
}

// The vectors published with the algorithm.
TEST(Philox, GivesTheKnownAnswers) {
  using Words = std::array<std::uint32_t, 4>;
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamsAndPositionsAreIndependentUniformNumbers) {
  double sum = 0, product = 0;
  constexpr int kCount = 100000;
  for (std::uint32_t i = 0; i < kCount; ++i) {
    const double a = uniform({1, 0, i}), b = uniform({1, 1, i});
    EXPECT_TRUE(a >= 0 && a < 1);
    sum += a;
    product += (a - 0.5) * (b - 0.5);
  }
  EXPECT_NEAR(sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(product / kCount, 0, 5 * (1.0 / 12) / std::sqrt(kCount));
}

TEST(Sampler, GreedyTakesTheLargestAndTheLowerIdOfEquals) {
  SamplingParams params;
  params.temperature = 0;
  EXPECT_EQ(sample_one({1, 3, 2, 3}, params), 1);
  EXPECT_EQ(sample_one({-kInfinity, -5}, params), 1);
}

// Chi-square with 5 degrees of freedom: 25.7 is exceeded once in ten thousand.
TEST(Sampler, DrawsFollowTheSoftmaxAtAnyTemperature) {
  const std::vector<float> logits = {0.5f, -1, 2, 0, 1, -0.5f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    auto params = open_params();
    params.temperature = temperature;
    params.seed = 42;
    constexpr int kCount = 20000;
    const auto seen = draws(logits, params, kCount);
    double total = 0;
    for (const float l : logits) total += std::exp(l / temperature);
    double chi_square = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      const double expected = kCount * std::exp(logits[i] / temperature) / total;
      const auto found = seen.find(static_cast<TokenId>(i));
      const double count = found == seen.end() ? 0 : found->second;
      chi_square += (count - expected) * (count - expected) / expected;
    }
    EXPECT_LT(chi_square, 25.7) << "temperature " << temperature;
  }
}

TEST(Sampler, TheSameKeyGivesTheSameTokenAndSeedsDiffer) {
  std::vector<float> logits(1000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  int same_seed = 0, other_seed = 0, other_stream = 0;
  for (std::uint32_t p = 0; p < 200; ++p) {
    const TokenId token = sample_one(logits, open_params(), {}, {7, 0, p});
    same_seed += token == sample_one(logits, open_params(), {}, {7, 0, p});
    other_seed += token == sample_one(logits, open_params(), {}, {8, 0, p});
    other_stream += token == sample_one(logits, open_params(), {}, {7, 1, p});
  }
  EXPECT_EQ(same_seed, 200);
  EXPECT_LT(other_seed, 10);
  EXPECT_LT(other_stream, 10);
}

TEST(Sampler, TopKKeepsTheKLargest) {
  auto params = open_params();
  params.top_k = 2;
  EXPECT_EQ(tokens_of(draws({1, 1.2f, 0.9f, 1.1f}, params)), (std::vector<TokenId>{1, 3}));
  // Of equals the lower ids stay.
  EXPECT_EQ(tokens_of(draws({1, 1, 1, 1}, params)), (std::vector<TokenId>{0, 1}));
}

TEST(Sampler, TopPKeepsTheFewestThatReachIt) {
  // Probabilities 0.4, 0.3, 0.2, 0.1.
  const std::vector<float> logits = {std::log(0.1f), std::log(0.4f), std::log(0.2f),
                                     std::log(0.3f)};
  auto params = open_params();
  params.top_p = 0.39f;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{1}));
  params.top_p = 0.65f;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{1, 3}));
  params.top_p = 0.85f;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{1, 2, 3}));
  params.top_p = 0;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{1}));
}

// Sorting only what is needed must not change which tokens stay.
TEST(Sampler, TopPWorksPastTheFirstSortedPiece) {
  const std::vector<float> logits(5000, 0.25f);
  auto params = open_params();
  params.top_p = 0.1f;
  for (const auto& [token, count] : draws(logits, params)) EXPECT_LT(token, 501);
}

TEST(Sampler, MinPKeepsThoseNearTheBest) {
  const std::vector<float> logits = {std::log(0.5f), std::log(0.26f), std::log(0.24f)};
  auto params = open_params();
  params.min_p = 0.5f;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{0, 1}));
  params.min_p = 1;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{0}));
}

TEST(Sampler, FiltersComeBeforeTheTemperature) {
  // At temperature 100 all are nearly equal, but min-p has seen the logits as they were.
  auto params = open_params();
  params.temperature = 100;
  params.min_p = 0.1f;
  EXPECT_EQ(tokens_of(draws({0, -2, -3}, params)), (std::vector<TokenId>{0, 1}));
}

TEST(Sampler, PenaltiesChangeLogitsByTheirFormula) {
  SamplingParams params;
  params.temperature = 0;
  params.repeat_penalty = 2;
  EXPECT_EQ(sample_one({4, 2.5f, 1}, params, {0}), 1);     // 4 / 2 = 2
  EXPECT_EQ(sample_one({-1, -1.5f}, params, {0}), 1);      // -1 * 2 = -2
  EXPECT_EQ(sample_one({4, 1.5f, 1}, params, {0, 0}), 0);  // once, however often it occurs
  params.repeat_penalty = 1;
  params.frequency_penalty = 0.5f;
  EXPECT_EQ(sample_one({4, 2.9f, 1}, params, {0, 0}), 0);  // 4 - 1
  EXPECT_EQ(sample_one({4, 3.1f, 1}, params, {0, 0}), 1);
  params.frequency_penalty = 0;
  params.presence_penalty = 1;
  EXPECT_EQ(sample_one({4, 2.9f, 1}, params, {0, 0, 0}), 0);
  EXPECT_EQ(sample_one({4, 3.1f, 1}, params, {0, 0, 0}), 1);
}

TEST(Sampler, PenaltiesReachBackAsFarAsToldAndNoFurther) {
  SamplingParams params;
  params.temperature = 0;
  params.presence_penalty = 10;
  params.repeat_last_n = 2;
  EXPECT_EQ(sample_one({4, 3, 2}, params, {0, 2, 2}), 0);
  EXPECT_EQ(sample_one({4, 3, 2}, params, {2, 0, 2}), 1);
  params.repeat_last_n = -1;
  EXPECT_EQ(sample_one({4, 3, 2}, params, {0, 2, 2}), 1);
  params.repeat_last_n = 0;
  EXPECT_EQ(sample_one({4, 3, 2}, params, {0, 0, 0}), 0);
}

TEST(Sampler, BiasIsAddedAndMinusInfinityForbids) {
  SamplingParams params;
  params.temperature = 0;
  params.logit_bias = {{0, -kInfinity}, {2, 1.5f}};
  EXPECT_EQ(sample_one({9, 1, 0}, params), 2);
  params = open_params();
  params.logit_bias = {{0, -kInfinity}};
  EXPECT_EQ(tokens_of(draws({9, 1, 1}, params)), (std::vector<TokenId>{1, 2}));
}

TEST(Sampler, LogitsThatAreNoNumbersAreErrorsThatNameTheToken) {
  Sampler sampler;
  for (const float bad : {std::nanf(""), kInfinity}) {
    const std::vector<float> logits = {0, bad, 1};
    const auto token = sampler.sample(logits, open_params(), {}, {});
    ASSERT_FALSE(token.ok());
    EXPECT_NE(token.status().message().find("token 1"), std::string::npos);
  }
  const std::vector<float> none = {-kInfinity, -kInfinity};
  EXPECT_FALSE(sampler.sample(none, open_params(), {}, {}).ok());
}

TEST(Sampler, ParametersOutOfRangeAreNamed) {
  const auto refusal = [](auto set) {
    SamplingParams params;
    set(params);
    return params.validate(100).message();
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  const auto nan = std::nanf("");
  EXPECT_NE(refusal([&](auto& p) { p.temperature = nan; }).find("temperature"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.temperature = -1; }).find("temperature"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.top_k = -1; }).find("top_k"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.top_p = 1.5f; }).find("top_p"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.min_p = -0.5f; }).find("min_p"), std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.repeat_penalty = 0; }).find("repeat_penalty"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) { p.repeat_last_n = -2; }).find("repeat_last_n"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& p) {
              p.logit_bias = {{100, 1.0f}};
            }).find("token 100"),
            std::string::npos);
  EXPECT_NE(refusal([&](auto& p) {
              p.logit_bias = {{1, nan}};
            }).find("token 1"),
            std::string::npos);
}

TEST(Sampler, LogProbabilitiesAreTheLogSoftmax) {
  const auto list = log_probabilities(std::vector<float>{1, 3, 2, 3}, 2, 2);
  ASSERT_EQ(list.size(), 3u);
  const double total = std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0);
  EXPECT_EQ(list[0].token, 2);
  EXPECT_NEAR(list[0].value, 2 - std::log(total), 1e-12);
  EXPECT_EQ(list[1].token, 1);
  EXPECT_EQ(list[2].token, 3);
  EXPECT_NEAR(list[2].value, 3 - std::log(total), 1e-12);
}

}  // namespace
}  // namespace strata
