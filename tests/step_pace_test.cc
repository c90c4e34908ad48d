#include "engine/step_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace strata {
namespace {

constexpr std::int32_t kBudget = 256;

// A machine whose steps cost so much.
double seconds(std::int32_t generating, std::int32_t rows) {
  return 0.020 + 0.0004 * generating + 0.002 * rows;
}

// Steps of a busy server; the mean time of the last ones, as a multiple of a step without prompts.
double slowdown(StepPace& pace, std::int32_t generating, double noise = 0) {
  double taken = 0, counted = 0;
  for (int step = 0; step < 300; ++step) {
    const std::int32_t rows = pace.prompt_rows(generating, kBudget);
    const double time = seconds(generating, rows) * (1 + noise * std::sin(step));
    pace.observe(generating, rows, time);
    if (step < 100) continue;
    taken += time / seconds(generating, 0);
    ++counted;
  }
  return taken / counted;
}

TEST(StepPace, WithoutGeneratingSequencesOrALimitPromptsHaveTheWholeStep) {
  StepPace limited(2), free(0);
  EXPECT_EQ(limited.prompt_rows(0, kBudget), kBudget);
  free.observe(4, 0, 0.1);
  EXPECT_EQ(free.prompt_rows(4, kBudget), kBudget);
}

TEST(StepPace, PromptsTakeWhatTheLimitLeavesThem) {
  for (const double limit : {1.5, 2.0, 4.0}) {
    for (const std::int32_t generating : {1, 8, 32}) {
      StepPace pace(limit);
      const double exact = slowdown(pace, generating), noisy = slowdown(pace, generating, 0.1);
      EXPECT_LE(exact, std::max(limit, 1.0 + 8 * 0.002 / seconds(generating, 0)));
      EXPECT_GT(exact, 1 + 0.75 * (limit - 1)) << "and not much less";
      EXPECT_NEAR(noisy, exact, 0.15 * limit);
    }
  }
}

TEST(StepPace, PromptsGetOnHoweverTightTheLimit) {
  StepPace pace(1);
  pace.observe(8, 0, 0.01);
  EXPECT_EQ(pace.prompt_rows(8, kBudget), 8);
  EXPECT_EQ(pace.prompt_rows(8, 3), 3);
}

TEST(StepPace, TimesANumberOfSequencesAloneBeforeItMixes) {
  StepPace pace(2);
  pace.observe(0, 100, 0.2);
  EXPECT_EQ(pace.prompt_rows(8, kBudget), 0);
  pace.observe(8, 0, seconds(8, 0));
  EXPECT_GE(pace.prompt_rows(8, kBudget), 8);
  EXPECT_EQ(pace.prompt_rows(32, kBudget), 0);
  EXPECT_GE(pace.prompt_rows(9, kBudget), 8) << "nearly as many";
  int alone = 0;
  for (int step = 0; step < 1'000; ++step) {
    const std::int32_t rows = pace.prompt_rows(8, kBudget);
    alone += rows == 0 ? 1 : 0;
    pace.observe(8, rows, seconds(8, rows));
  }
  EXPECT_NEAR(alone, 15, 2);
}

TEST(StepPace, OneSlowStepChangesLittle) {
  StepPace pace(2);
  const double before = slowdown(pace, 8);
  const std::int32_t rows = pace.prompt_rows(8, kBudget);
  pace.observe(8, rows, 10);
  EXPECT_GE(pace.prompt_rows(8, kBudget), rows / 2);
  EXPECT_NEAR(slowdown(pace, 8), before, 0.1);
}

TEST(StepPace, FollowsAMachineThatBecomesSlower) {
  StepPace pace(2);
  slowdown(pace, 8);
  for (int step = 0; step < 300; ++step) {
    const std::int32_t rows = pace.prompt_rows(8, kBudget);
    pace.observe(8, rows, seconds(8, 0) + 0.008 * rows);
  }
  const std::int32_t rows = pace.prompt_rows(8, kBudget);
  EXPECT_LE(rows, std::max(8.0, seconds(8, 0) / 0.008));
}

}  // namespace
}  // namespace strata
