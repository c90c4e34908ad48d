#include "evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

namespace strata::apps {
namespace {

TEST(Mean, GivesTheStandardErrorOfTheMean) {
  Mean mean;
  for (const double x : {1.0, 2.0, 3.0, 4.0}) mean.add(x);
  EXPECT_DOUBLE_EQ(mean.value(), 2.5);
  EXPECT_DOUBLE_EQ(mean.error(), std::sqrt(1.25 / 3));
}

TEST(ScoredRow, TurnsLogitsIntoLogProbabilities) {
  const float logits[] = {std::log(1.0f), std::log(2.0f), std::log(5.0f)};
  const ScoredRow row(logits);
  EXPECT_EQ(row.best, 2);
  EXPECT_NEAR(row.log_probability(0), std::log(1.0 / 8), 1e-7);
  EXPECT_NEAR(row.log_probability(2), std::log(5.0 / 8), 1e-7);
}

TEST(ScoredRow, SurvivesLogitsFarApart) {
  const float logits[] = {-3e38f, 0.0f, 88.0f};
  const ScoredRow row(logits);
  EXPECT_NEAR(row.log_probability(2), 0, 1e-12);
  EXPECT_NEAR(row.log_probability(1), -88, 1e-5);
}

TEST(KlDivergence, IsZeroForEqualRowsAndTheKnownSumForOthers) {
  const float p[] = {std::log(1.0f), std::log(3.0f)};
  const float q[] = {std::log(2.0f), std::log(2.0f)};
  EXPECT_DOUBLE_EQ(kl_divergence(ScoredRow(p), ScoredRow(p)), 0);
  EXPECT_NEAR(kl_divergence(ScoredRow(p), ScoredRow(q)),
              0.25 * std::log(0.25 / 0.5) + 0.75 * std::log(0.75 / 0.5), 1e-7);
}

TEST(KlDivergence, AForbiddenTokenOfTheBaseAddsNothing) {
  const float p[] = {-3e38f, 0.0f};
  const float q[] = {0.0f, 0.0f};
  EXPECT_NEAR(kl_divergence(ScoredRow(p), ScoredRow(q)), std::log(2.0), 1e-12);
}

TEST(PerplexityScore, IsTheVocabularyForUniformRows) {
  PerplexityScore score;
  for (int i = 0; i < 10; ++i) score.add(std::log(1.0 / 32));
  EXPECT_NEAR(score.value(), 32, 1e-9);
  EXPECT_NEAR(score.error(), 0, 1e-6);
}

TEST(DivergenceScore, CountsAgreementAndRanksSamples) {
  DivergenceScore score;
  const float base[] = {0.0f, 1.0f};
  for (const float far : {0.0f, 1.0f, 2.0f, 3.0f}) {
    const float row[] = {far, 1.0f};
    score.add(ScoredRow(base), ScoredRow(row));
  }
  EXPECT_DOUBLE_EQ(score.agreement().value(), 0.25);  // a tie goes to the first token
  EXPECT_EQ(score.quantile(0.25), 0);
  EXPECT_LT(score.quantile(0.5), score.quantile(0.75));
  EXPECT_EQ(score.largest(), score.quantile(0.99));
}

}  // namespace
}  // namespace strata::apps
