#include <gtest/gtest.h>

#include "placement/plan.h"

namespace strata {
namespace {

constexpr Bytes kKeyBlock = 10 * kMiB;
constexpr Bytes kState = 3 * kMiB;

// One group of keys and values, and one of states.
Graph hybrid_graph() {
  Graph graph;
  graph.context_length = 8192;
  graph.cache_groups.resize(2);
  graph.cache_groups[1].spec.state_size = 16;
  return graph;
}

Result<PlacementPlan> plan_with(Bytes budget, std::int32_t context = 0) {
  return make_plan(hybrid_graph(), {context, 4, {256, 16}, kMiB}, {1024, {kKeyBlock, kState}, kMiB},
                   budget);
}

Bytes cache_of(const PlacementPlan& plan) {
  return static_cast<Bytes>(plan.cache_blocks[0]) * kKeyBlock +
         static_cast<Bytes>(plan.cache_blocks[1]) * kState;
}

TEST(Planner, AddsStatesWhereMemoryIsLeft) {
  const auto ample = plan_with(kGiB);
  ASSERT_TRUE(ample.ok()) << ample.status().message();
  EXPECT_EQ(ample->context, 8192);
  EXPECT_EQ(ample->cache_blocks[0], 4 * 8);
  EXPECT_EQ(ample->cache_blocks[1], 4 * (2 + 8192 / 4096));
  EXPECT_EQ(ample->state_tokens, 4096);
  EXPECT_EQ(ample->cache, cache_of(*ample));

  const Bytes least = ample->total() - 8 * kState;
  for (const Bytes left : {Bytes{0}, kState - 1, kState, 3 * kState + 1}) {
    const auto plan = plan_with(least + left);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(plan->context, 8192);
    EXPECT_EQ(plan->cache_blocks[1], 4 * 2 + static_cast<std::int32_t>(left / kState));
    EXPECT_EQ(plan->state_tokens, 0) << "they would take the place of others";
    EXPECT_EQ(plan->cache, cache_of(*plan));
    EXPECT_LE(plan->total(), plan->budget);
  }
}

TEST(Planner, CountsWhatIsReservedForOtherWork) {
  const Bytes without = plan_with(kGiB, 8192)->total();
  Workload workload{8192, 4, {256, 16}, kMiB};
  workload.reserved = {{"grammars", 20 * kMiB}, {"requests", 30 * kMiB}};
  const DeviceCosts costs{1024, {kKeyBlock, kState}, kMiB};
  const auto plan = make_plan(hybrid_graph(), workload, costs, kGiB);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_EQ(plan->total(), without + 50 * kMiB);
  const std::string parts = ", grammars 20.0 MiB, requests 30.0 MiB";
  EXPECT_EQ(
      describe(*plan),
      "memory: weights 0 bytes, cache 368.0 MiB for 8192 tokens, activations 1.0 MiB, staging 8.0 "
      "MiB, program 65.0 MiB, grammars 20.0 MiB, requests 30.0 MiB, total 492.0 MiB of 1.00 "
      "GiB");
  const auto refused = make_plan(hybrid_graph(), workload, costs, plan->total() - 9 * kState);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find(parts), std::string::npos)
      << refused.status().message();
}

TEST(Planner, HalvesTheContextAndSaysSoOrRefusesWithTheNumbers) {
  const Bytes least = plan_with(kGiB)->total() - 8 * kState;
  const auto halved = plan_with(least - 1);
  ASSERT_TRUE(halved.ok()) << halved.status().message();
  EXPECT_EQ(halved->context, 4096);
  ASSERT_EQ(halved->notes.size(), 1u);
  EXPECT_NE(halved->notes[0].find("from 8192 to 4096"), std::string::npos) << halved->notes[0];

  const auto refused = plan_with(least - 1, 8192);
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.status().message().find("cache 344.0 MiB for 8192 tokens"), std::string::npos)
      << refused.status().message();
}

}  // namespace
}  // namespace strata
