#include "serve/metrics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::serve {
namespace {

using ::testing::HasSubstr;

constexpr std::array kBounds = {1.0, 2.0, 4.0};

TEST(Histogram, CountsUpToEachBound) {
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 1.5, 3.0, 9.0}) histogram.add(value);
  EXPECT_EQ(histogram.text("h", "m=\"x\""),
            "h_bucket{m=\"x\",le=\"1\"} 2\nh_bucket{m=\"x\",le=\"2\"} 3\n"
            "h_bucket{m=\"x\",le=\"4\"} 4\nh_bucket{m=\"x\",le=\"+Inf\"} 5\n"
            "h_sum{m=\"x\"} 15\nh_count{m=\"x\"} 5\n");
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
  ServerMetrics server;
  Metrics& metrics = server.of("a\"b");
  metrics.requests_arrived(2);
  metrics.requests_arrived(3);
  metrics.requests_refused(1);
  metrics.requests_abandoned(1);
  for (int i = 0; i < 3; ++i) metrics.prompt_started(0.5, 10, 4);
  metrics.first_token(0.5);
  EXPECT_EQ(metrics.counts().completion_tokens, 1u) << "while it runs";
  for (int i = 0; i < 9; ++i) metrics.next_token(0.1);
  metrics.request_ended(RequestEnd::kLength, 2, 7);
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
  EXPECT_GT(server.queued_quantile(0.5), 0);
  for (const char* const line :
       {R"(vllm:request_success_total{model_name="a\"b",finished_reason="length"} 1)",
        R"(vllm:request_success_total{model_name="a\"b",finished_reason="stop"} 0)",
        R"(vllm:e2e_request_latency_seconds_count{model_name="a\"b"} 1)"})
    EXPECT_THAT(server.text(), HasSubstr(fmt::format("{}\n", line)));
}

TEST(Metrics, OfNoModelAreOnlyThoseThatHaveSomething) {
  ServerMetrics server;
  server.of("a");
  server.of("").requests_arrived(2);
  server.of("").requests_refused(2);
  const std::string text = server.text();
  std::size_t lines = 0;
  for (std::size_t at = 0; (at = text.find("model_name=\"\"", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_EQ(lines, 2u) << text;
  EXPECT_THAT(text, HasSubstr("strata:requests_refused_total{model_name=\"\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:generation_tokens_total{model_name=\"a\"} 0\n"));
}

TEST(Metrics, AreThoseOfEachModelAndOfAllTogether) {
  ServerMetrics server;
  for (const char* const model : {"a", "b", "a"}) {
    server.of(model).prompt_started(0.5, 10, 4);
    server.of(model).request_ended(RequestEnd::kStop, 1, 2);
  }
  EXPECT_EQ(server.of("a").counts().done, 2u);
  EXPECT_EQ(server.counts().done, 3u);
  EXPECT_EQ(server.counts().prompt_tokens, 30u);
  const std::string text = server.text();
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_count{model_name=\"a\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_count{model_name=\"b\"} 1\n"));
  EXPECT_EQ(text.find("# TYPE vllm:request_prompt_tokens "),
            text.rfind("# TYPE vllm:request_prompt_tokens "));
}

}  // namespace
}  // namespace strata::serve
