#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

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
  SamplerState state;
  const auto token = sampler.sample(logits, params, history, key, state, {});
  EXPECT_TRUE(token.ok()) << token.status().message();
  return token.ok() ? *token : -1;
}

// The tokens that turn up in many draws.
std::map<TokenId, int> draws(const std::vector<float>& logits, const SamplingParams& params,
                             int count = 4000) {
  Sampler sampler;
  SamplerState state;
  std::map<TokenId, int> seen;
  for (int i = 0; i < count; ++i)
    ++seen[*sampler.sample(logits, params, {}, {params.seed, 0, static_cast<std::uint32_t>(i)},
                           state, {})];
  return seen;
}

std::vector<TokenId> tokens_of(const std::map<TokenId, int>& seen) {
  std::vector<TokenId> tokens;
  tokens.reserve(seen.size());
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
  for (const std::int32_t all : {0, -1}) {
    params.top_k = all;
    EXPECT_EQ(draws({1, 1, 1, 1}, params).size(), 4u);
  }
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

// Sorting only near the border must not change which tokens stay.
TEST(Sampler, TopPOfEqualsKeepsTheLowerIds) {
  constexpr std::size_t kKept = STRATA_SLOW ? 50 : 500;
  const std::vector<float> logits(10 * kKept, 0.25f);
  auto params = open_params();
  params.top_p = 0.1f;
  const auto seen = draws(logits, params, 8 * kKept);
  for (const auto& [token, count] : seen) EXPECT_LE(token, kKept);
  EXPECT_GT(seen.size(), kKept * 4 / 5);
}

// Against a full sort, on distributions from peaked to flat.
TEST(Sampler, TopPAndTopKOfManyTokensAreThoseOfASort) {
  for (const float spread : {0.0f, 0.01f, 1.0f, 30.0f}) {
    std::vector<float> logits(3000);
    for (std::size_t i = 0; i < logits.size(); ++i)
      logits[i] = spread * std::sin(static_cast<float>(i * i));
    std::vector<TokenId> ranking(logits.size());
    std::iota(ranking.begin(), ranking.end(), 0);
    const auto logit = [&](TokenId t) { return logits[static_cast<std::size_t>(t)]; };
    std::ranges::stable_sort(ranking, std::greater(), logit);
    double total = 0, sum = 0;
    for (const TokenId t : ranking) total += std::exp(double{logit(t)} - logit(ranking[0]));
    std::size_t nucleus = 0;
    while (sum < 0.7 * total)
      sum += std::exp(double{logit(ranking[nucleus++])} - logit(ranking[0]));
    auto params = open_params();
    params.top_p = 0.7f;
    params.top_k = 600;
    for (auto [k, p, kept] : {std::tuple(600, 1.0f, std::size_t{600}), {0, 0.7f, nucleus}}) {
      params.top_k = k;
      params.top_p = p;
      std::vector<TokenId> best(ranking.begin(),
                                ranking.begin() + static_cast<std::ptrdiff_t>(kept));
      std::ranges::sort(best);
      for (const auto& [token, count] : draws(logits, params, STRATA_SLOW ? 100 : 2000))
        EXPECT_TRUE(std::ranges::binary_search(best, token)) << token << " of " << kept;
    }
  }
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

TEST(Sampler, MinKeepHoldsAgainstEveryFilterByProbability) {
  const std::vector<float> logits = {5, 4, 1, 0};
  for (const auto narrow :
       {+[](SamplingParams& p) { p.top_p = 0.01f; }, +[](SamplingParams& p) { p.min_p = 0.99f; },
        +[](SamplingParams& p) { p.typical_p = 0.01f; }}) {
    auto params = open_params();
    narrow(params);
    EXPECT_EQ(draws(logits, params).size(), 1u);
    params.min_keep = 2;
    EXPECT_EQ(draws(logits, params).size(), 2u);
  }
}

TEST(Sampler, XtcDropsAllButTheLeastOfTheProbableAsOftenAsTold) {
  const std::vector<float> logits = {2, 1.9f, 1.8f, -2};
  auto params = open_params();
  params.xtc_probability = 1;
  EXPECT_EQ(tokens_of(draws(logits, params)), (std::vector<TokenId>{2, 3}));
  params.min_keep = 3;
  EXPECT_EQ(draws(logits, params).size(), 4u);
  params.min_keep = 0;
  params.xtc_threshold = 0.6f;
  EXPECT_EQ(draws(logits, params).size(), 4u);
  params.xtc_threshold = 0.1f;
  params.xtc_probability = 0.25f;
  params.temperature = 0;
  const auto seen = draws(logits, params);
  EXPECT_EQ(tokens_of(seen), (std::vector<TokenId>{0, 2}));
  EXPECT_NEAR(seen.at(2), 1000, 5 * std::sqrt(4000 * 0.25 * 0.75));
}

// Where XTC finds nothing to drop, its chance must leave no trace in the draw.
TEST(Sampler, XtcHasRandomNumbersOfItsOwn) {
  const std::vector<float> logits = {1, 0.5f, 0, -0.5f, 0.2f, 0.1f};
  auto params = open_params();
  const auto without = [&](std::uint32_t p) { return sample_one(logits, params, {}, {3, 0, p}); };
  auto with = params;
  with.xtc_probability = 0.5f;
  with.xtc_threshold = 0.9f;
  for (std::uint32_t p = 0; p < 200; ++p)
    EXPECT_EQ(sample_one(logits, with, {}, {3, 0, p}), without(p));
}

TEST(Sampler, DryLowersWhatWouldProlongARepetition) {
  SamplingParams params;
  params.temperature = 0;
  params.dry_multiplier = 1;
  params.dry_base = 2;
  const std::vector<TokenId> history = {0, 1, 2, 3, 4, 0, 1, 2};
  // Three tokens are repeated, one more than allowed: 3 would be the fourth.
  EXPECT_EQ(sample_one({0, 0, 0, 2.1f, 0}, params, history), 3);
  EXPECT_EQ(sample_one({0, 0, 0, 1.9f, 0}, params, history), 0);
  params.dry_allowed_length = 4;
  EXPECT_EQ(sample_one({0, 0, 0, 1.9f, 0}, params, history), 3);
  params.dry_allowed_length = 2;
  params.dry_penalty_last_n = 5;
  EXPECT_EQ(sample_one({0, 0, 0, 1.9f, 0}, params, history), 3);
  params.dry_penalty_last_n = -1;
  params.dry_breakers = {{.token = 1}};
  EXPECT_EQ(sample_one({0, 0, 0, 1.9f, 0}, params, history), 3);
  params.dry_breakers = {{.token = 3}};
  EXPECT_EQ(sample_one({0, 0, 0, 1.9f, 0}, params, history), 3);
}

TEST(Sampler, DryBreakersAreFoundHoweverTokensDivideThem) {
  SamplingParams params;
  params.temperature = 0;
  params.dry_multiplier = 1;
  params.dry_base = 2;
  const std::vector<TokenId> history = {0, 1, 2, 3, 4, 0, 1, 2};
  const auto broken = [&](std::vector<BreakerPart> parts) {
    params.dry_breakers = std::move(parts);
    return sample_one({0, 0, 0, 1.9f, 0}, params, history) == 3;
  };
  EXPECT_TRUE(broken({{0, 0, 0, 5}, {1, 0, 5, 0}}));
  EXPECT_TRUE(broken({{0, 0, 0, 1}, {0, 0, 0, 5}, {1, 0, 5, 0}}));  // begins in two ways
  EXPECT_TRUE(broken({{0, 0, 0, 1}, {1, 0, 1, 2}, {2, 0, 2, 0}}));
  EXPECT_FALSE(broken({{0, 0, 0, 1}, {1, 0, 2, 0}}));                // a gap
  EXPECT_FALSE(broken({{0, 0, 0, 1}, {1, 1, 1, 0}}));                // of different texts
  EXPECT_FALSE(broken({{1, 0, 1, 0}, {2, 0, 1, 0}}));                // nothing begins it
  EXPECT_FALSE(broken({{1, 0, 0, 1}, {2, 0, 1, 2}, {3, 0, 2, 0}}));  // cut off by the end
}

TEST(Sampler, DryStaysLinearAndFiniteOnLongRepetitions) {
  SamplingParams params;
  params.temperature = 0;
  params.dry_multiplier = 100;
  params.dry_base = 100;
  const std::vector<TokenId> history(300000, 1);
  EXPECT_EQ(sample_one({0, 3, -1}, params, history), 0);
  EXPECT_EQ(sample_one({-kInfinity, 3, -kInfinity}, params, history), 1);
}

TEST(Sampler, MirostatHoldsTheSurpriseNearItsAim) {
  std::vector<float> logits(2000);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = 4 * std::sin(static_cast<float>(i * i));
  auto params = open_params();
  params.mirostat = 2;
  params.mirostat_tau = 6;
  Sampler sampler;
  SamplerState state;
  double last = 0, sum = 0;
  constexpr int kCount = 2000;
  for (int i = 0; i < kCount; ++i) {
    ASSERT_TRUE(
        sampler.sample(logits, params, {}, {1, 0, static_cast<std::uint32_t>(i)}, state, {}).ok());
    const double surprise = i == 0 ? 6 : 6 + (last - *state.mirostat_mu) / 0.1;
    last = *state.mirostat_mu;
    sum += surprise;
  }
  EXPECT_NEAR(sum / kCount, 6, 0.1);
}

TEST(Sampler, StagesRunInTheGivenOrder) {
  auto params = open_params();
  params.top_k = 2;
  params.presence_penalty = 5;
  params.order = *parse_sampling_order("penalties;top_k;temperature");
  EXPECT_EQ(sample_one({4, 3, 2},
                       [&] {
                         auto p = params;
                         p.temperature = 0;
                         return p;
                       }(),
                       {0, 1}),
            2);
  params.order = *parse_sampling_order("top_k;penalties;temperature");
  params.temperature = 0;
  EXPECT_EQ(sample_one({4, 3, 2}, params, {0, 1}), 0);
  params.temperature = 100;
  params.top_k = 0;
  params.min_p = 0.9f;
  params.order = *parse_sampling_order("temperature;min_p");
  EXPECT_EQ(tokens_of(draws({0, -2, -30}, params)), (std::vector<TokenId>{0, 1}));
}

TEST(Sampler, StagesLeftOutDoNotRun) {
  auto params = open_params();
  params.top_k = 1;
  params.presence_penalty = 100;
  params.order = *parse_sampling_order("min_p,temperature");
  EXPECT_EQ(draws({1, 1.5f}, params).size(), 2u);
}

TEST(SamplingOrder, TakesTheCommonSpellingsAndRefusesOthers) {
  const auto order = parse_sampling_order("top-k;nucleus;typical,temp;min-p;typ_p");
  EXPECT_FALSE(order.ok());
  EXPECT_EQ(to_string(*parse_sampling_order("top-k;nucleus;typical-p,temp;min-p;xtc")),
            "top_k;top_p;typ_p;temperature;min_p;xtc");
  EXPECT_EQ(*parse_sampling_order(to_string(SamplingParams().order)), SamplingParams().order);
  for (const char* const text : {"", "top_k;", "mirostat", "top_k;top_k", "Top_K"})
    EXPECT_FALSE(parse_sampling_order(text).ok()) << text;
}

TEST(Sampler, ExtremeLogitsAndParametersLeaveAToken) {
  constexpr float kMost = std::numeric_limits<float>::max();
  SamplingParams params;
  params.temperature = 1e-30f;
  params.repeat_penalty = 0.01f;
  params.frequency_penalty = -100;
  params.dynatemp_range = 100;
  params.typical_p = 0;
  params.top_n_sigma = 0.001f;
  params.xtc_probability = 1;
  for (const std::vector<float>& logits :
       {std::vector<float>{kMost, -kMost, 0}, {-kMost, -kMost}, {0}, {1e30f, 1, -kInfinity}}) {
    for (const std::int32_t mirostat : {0, 2}) {
      params.mirostat = mirostat;
      ASSERT_TRUE(params.validate(3).ok());
      EXPECT_GE(sample_one(logits, params, {0, 0, 0}), 0);
    }
  }
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
  SamplerState state;
  for (const float bad : {std::nanf(""), kInfinity}) {
    const std::vector<float> logits = {0, bad, 1};
    const auto token = sampler.sample(logits, open_params(), {}, {}, state, {});
    ASSERT_FALSE(token.ok());
    EXPECT_NE(token.status().message().find("token 1"), std::string::npos);
  }
  const std::vector<float> none = {-kInfinity, -kInfinity};
  EXPECT_FALSE(sampler.sample(none, open_params(), {}, {}, state, {}).ok());
  SamplingParams forbidding;
  forbidding.logit_bias = {{0, -kInfinity}};
  EXPECT_FALSE(sampler.sample(std::vector<float>{1}, forbidding, {}, {}, state, {}).ok());
}

std::vector<std::uint64_t> mask_of(std::size_t words, std::initializer_list<std::size_t> tokens) {
  std::vector<std::uint64_t> mask(words);
  for (const std::size_t token : tokens) mask[token / 64] |= std::uint64_t{1} << token % 64;
  return mask;
}

// A token that is not allowed neither wins nor takes a place among the k best, nor do its bias and
// its logit matter.
TEST(Sampler, TokensThatAreNotAllowedAreNoCandidates) {
  std::vector<float> logits(130, 1);
  logits[0] = 50;
  logits[1] = std::nanf("");
  logits[64] = 2;
  logits[129] = 3;
  Sampler sampler;
  SamplerState state;
  auto params = open_params();
  params.top_k = 2;
  params.logit_bias = {{0, 100.0f}};
  std::map<TokenId, int> seen;
  const auto mask = mask_of(3, {5, 64, 129});
  for (std::uint32_t i = 0; i < 200; ++i)
    ++seen[*sampler.sample(logits, params, {}, {1, 0, i}, state, mask)];
  EXPECT_EQ(tokens_of(seen), (std::vector<TokenId>{64, 129}));
  params.temperature = 0;
  EXPECT_EQ(*sampler.sample(logits, params, {}, {}, state, mask), 129);
}

// Where few logits decide, the others are left out from the start; a mask leaves in all it allows.
TEST(Sampler, LeavingOutWhatDoesNotDecideChangesNothing) {
  constexpr std::size_t kTokens = 5000;
  const std::vector<std::uint64_t> all((kTokens + 63) / 64, ~std::uint64_t{0});
  std::vector<float> logits(kTokens);
  std::vector<TokenId> history(40);
  for (std::uint32_t round = 0; round < 400; ++round) {
    const std::uint32_t levels = round % 2 == 0 ? 7 : 100'000;  // few: many equal logits
    for (std::uint32_t i = 0; i < kTokens; ++i) {
      const auto word = philox({i, round, 0, 0}, {5, 6})[0];
      logits[i] = word % 97 == 0 ? -kInfinity : static_cast<float>(word % levels) - 3;
    }
    // Those that penalties lower are among the best.
    for (std::size_t i = 0; i < history.size(); ++i)
      history[i] = i % 2 == 0 ? static_cast<TokenId>(std::ranges::max_element(logits) -
                                                     logits.begin() - static_cast<int>(i / 2))
                              : static_cast<TokenId>(i * 100);
    for (TokenId& token : history) token = std::clamp<TokenId>(token, 0, kTokens - 1);
    SamplingParams params;
    params.temperature = round % 3 == 0 ? 0.0f : 0.9f;
    params.top_k = round % 5 == 0 ? 1 : 20;
    params.repeat_penalty = round % 4 == 0 ? 1.0f : 1.3f;
    params.frequency_penalty = round % 7 == 0 ? 0.5f : 0.0f;
    params.dry_multiplier = round % 11 == 0 ? 0.8f : 0.0f;
    Sampler fast, whole;
    SamplerState state;
    for (std::uint32_t position = 0; position < 4; ++position) {
      const RandomKey key{round, 0, position};
      const auto expected = whole.sample(logits, params, history, key, state, all);
      EXPECT_EQ(*fast.sample(logits, params, history, key, state, {}), *expected) << round;
    }
  }
}

TEST(Sampler, AMaskAndTheLogitsMayDifferInLength) {
  Sampler sampler;
  SamplerState state;
  const std::vector<float> logits(70, 0);
  const auto longer = mask_of(3, {69, 70, 130});
  EXPECT_EQ(*sampler.sample(logits, open_params(), {}, {}, state, longer), 69);
  const auto shorter = mask_of(1, {3});
  EXPECT_EQ(*sampler.sample(logits, open_params(), {}, {}, state, shorter), 3);
}

TEST(Sampler, WhereNoTokenIsAllowedTheErrorNamesTheConstraint) {
  Sampler sampler;
  SamplerState state;
  for (const auto& mask : {mask_of(1, {}), mask_of(1, {2})}) {
    const std::vector<float> logits = {0, 1, -kInfinity};
    const auto token = sampler.sample(logits, open_params(), {}, {}, state, mask);
    ASSERT_FALSE(token.ok());
    EXPECT_NE(token.status().message().find("constraint"), std::string::npos);
  }
}

TEST(Sampler, WhereBiasesForbidAllTokensTheErrorNamesThem) {
  Sampler sampler;
  SamplerState state;
  SamplingParams params = open_params();
  params.logit_bias = {{0, -kInfinity}, {1, -kInfinity}};
  const auto token = sampler.sample(std::vector<float>{0, 1}, params, {}, {}, state, {});
  ASSERT_FALSE(token.ok());
  EXPECT_NE(token.status().message().find("logit_bias"), std::string::npos);
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
