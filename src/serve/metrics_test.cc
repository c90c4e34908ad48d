#include "serve/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::serve {
namespace {

using ::testing::HasSubstr;

constexpr std::array kBounds = {1.0, 2.0, 4.0};

TEST(Histogram, CountsUpToEachBound) {
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 3.0, 9.0}) histogram.add(value);
  EXPECT_EQ(histogram.text("h"),
            "h_bucket{le=\"1\"} 2\nh_bucket{le=\"2\"} 3\nh_bucket{le=\"4\"} 4\n"
            "h_bucket{le=\"+Inf\"} 5\nh_sum 15\nh_count 5\n");
}

TEST(Histogram, EstimatesQuantilesWithinTheirBounds) {
  Histogram histogram(kBounds);
  EXPECT_EQ(histogram.quantile(0.5), 0);
  for (int i = 0; i < 10; ++i) histogram.add(1.5);
  EXPECT_DOUBLE_EQ(histogram.quantile(0.5), 1.5);
  EXPECT_DOUBLE_EQ(histogram.quantile(1), 2);
  histogram.add(100);
  EXPECT_EQ(histogram.quantile(1), 4);
}

TEST(Metrics, CountEachRequestOnce) {
  Metrics metrics;
  metrics.requests_arrived(2);
  metrics.requests_arrived(3);
  metrics.requests_refused(1);
  metrics.requests_abandoned(1);
  for (int i = 0; i < 3; ++i) metrics.prompt_started(0.5, 10, 4);
  metrics.request_ended(RequestEnd::kDone, 2, 7);
  metrics.request_ended(RequestEnd::kFailed, 2, 1);
  metrics.request_ended(RequestEnd::kDisconnected, 2, 2);
  const Metrics::Counts counts = metrics.counts();
  EXPECT_EQ(counts.arrived, 5u);
  EXPECT_EQ(counts.refused, 1u);
  EXPECT_EQ(counts.disconnected, 2u);
  EXPECT_EQ(counts.refused + counts.done + counts.failed + counts.disconnected, counts.arrived);
  EXPECT_EQ(counts.prompt_tokens, 30u);
  EXPECT_EQ(counts.cached_tokens, 12u);
  EXPECT_EQ(counts.completion_tokens, 10u);
  EXPECT_GT(metrics.queued_quantile(0.5), 0);
  EXPECT_THAT(metrics.text(), HasSubstr("vllm:request_success_total 1\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("vllm:e2e_request_latency_seconds_count 1\n"));
}

}  // namespace
}  // namespace strata::serve
