#include "bench_work.h"

#include <gtest/gtest.h>

#include "bench_result.h"

namespace strata::apps {
namespace {

constexpr std::int32_t kWidth = 64;
constexpr std::int32_t kRows = 128;
constexpr double kMatrix = kWidth * kRows * 4.0;  // bytes of a matrix in f32

ValueId add_value(Graph& graph, RowDomain domain, std::int32_t width) {
  graph.values.push_back({domain, width});
  return ValueId{static_cast<std::int32_t>(graph.values.size()) - 1};
}

WeightId add_weight(Graph& graph, std::int64_t slices = 1) {
  graph.weights.push_back({"w", WeightRole::kMatrix, FormatId::F32, kWidth, kRows, slices});
  return WeightId{static_cast<std::int32_t>(graph.weights.size()) - 1};
}

Projection project(Graph& graph, WeightId weight, RowDomain domain) {
  return {weight, std::nullopt, add_value(graph, domain, kRows), std::nullopt};
}

// A table, a matrix for every row, `experts` of which two are used, and a head.
Graph make_graph(std::int64_t experts, bool tied) {
  Graph graph;
  graph.experts_used = experts > 0 ? 2 : 0;
  const WeightId table = add_weight(graph);
  const ValueId in = add_value(graph, RowDomain::kTokens, kWidth);
  graph.ops.push_back(EmbedOp{table, in});
  graph.ops.push_back(MatMulOp{in, {project(graph, add_weight(graph), RowDomain::kTokens)}});
  if (experts > 0)
    graph.ops.push_back(ExpertMatMulOp{
        in, in, {project(graph, add_weight(graph, experts), RowDomain::kRouted)}, 2});
  const ValueId selected = add_value(graph, RowDomain::kLogits, kWidth);
  graph.ops.push_back(SelectLogitRowsOp{in, selected});
  const WeightId head = tied ? table : add_weight(graph);
  graph.ops.push_back(MatMulOp{selected, {project(graph, head, RowDomain::kLogits)}});
  return graph;
}

Work work_of(const Graph& graph, std::vector<SliceShape> slices) {
  const auto counter = WorkCounter::create(graph, CacheFormat::kF16);
  EXPECT_TRUE(counter.ok());
  return counter->step(slices);
}

TEST(WorkCounter, ReadsWeightsOncePerStepAndTheHeadWhereLogitsAreWanted) {
  const Graph graph = make_graph(0, false);
  const double row = kMatrix / kRows;
  EXPECT_EQ(work_of(graph, {{0, 8, 0}}).bytes, kMatrix + 8 * row);
  EXPECT_EQ(work_of(graph, {{0, 8, 1}}).bytes, 2 * kMatrix + 8 * row);
  EXPECT_EQ(work_of(make_graph(0, true), {{0, 8, 1}}).bytes, 2 * kMatrix);
}

TEST(WorkCounter, MultipliesByTheRowsOfEachDomain) {
  const double product = 2.0 * kWidth * kRows;
  EXPECT_EQ(work_of(make_graph(0, false), {{0, 8, 1}}).operations, 8 * product + product);
  EXPECT_EQ(work_of(make_graph(4, false), {{0, 8, 0}, {5, 1, 1}}).operations,
            9 * product + 18 * product + product);
}

TEST(WorkCounter, TakesExpertsAsEquallyLikely) {
  const Graph graph = make_graph(4, true);
  EXPECT_DOUBLE_EQ(work_of(graph, {{0, 1, 1}}).bytes, 2 * kMatrix + 2 * kMatrix);
  EXPECT_DOUBLE_EQ(work_of(graph, {{0, 1, 1}, {0, 1, 1}}).bytes, 2 * kMatrix + 3 * kMatrix);
}

TEST(WorkCounter, ReadsWhatASliceSeesOfTheCache) {
  Graph graph;
  graph.cache_groups = {{{2, 16, 16, 0, 0}, 3}};  // keys and values in f16: 384 bytes a token
  EXPECT_EQ(work_of(graph, {{0, 1, 0}}).bytes, 384);
  EXPECT_EQ(work_of(graph, {{100, 8, 0}, {9, 1, 1}}).bytes, (108 + 10) * 384);
  graph.cache_groups[0].spec.window = 32;
  EXPECT_EQ(work_of(graph, {{100, 1, 0}}).bytes, 32 * 384);
  EXPECT_EQ(work_of(graph, {{100, 8, 0}}).bytes, 39 * 384);
  graph.cache_groups = {{{0, 0, 0, 0, 16}, 3}};  // a state of 64 bytes
  EXPECT_EQ(work_of(graph, {{100, 8, 0}}).bytes, 192);
}

TEST(BenchResult, SpreadsAroundTheMedian) {
  EXPECT_EQ(spread_of({3, 1, 2}).median, 2);
  EXPECT_EQ(spread_of({4, 1, 2, 3}).median, 2.5);
  EXPECT_EQ(spread_of({3, 1, 2}).lowest, 1);
  EXPECT_EQ(spread_of({3, 1, 2}).highest, 3);
}

TEST(BenchResult, TakesTheLimitsOfAsManyThreadsAndOfTheSameIsa) {
  const MachineLimits measured{"cpu", "avx2", "", {{1, 10, 100, 0}, {4, 30, 400, 0}}};
  const auto limits = [&](const char* isa, int threads) {
    return limits_of(measured, {"cpu", isa, 8, threads, 0});
  };
  EXPECT_EQ(limits("avx2", 1)->read_bandwidth, 10);
  EXPECT_EQ(limits("avx2", 1)->int8_ops, 100);
  EXPECT_EQ(limits("avx2", 2)->read_bandwidth, 30);
  EXPECT_EQ(limits("avx2", 2)->threads, 4);
  EXPECT_FALSE(limits("avx2", 5).has_value());
  EXPECT_EQ(limits("scalar", 4)->int8_ops, 0);
  EXPECT_FALSE(limits_of({}, {}).has_value());
}

}  // namespace
}  // namespace strata::apps
