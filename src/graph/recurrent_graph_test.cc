// Graphs with recurrent operations: what validate() refuses, and the cache groups they ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/builder.h"
#include "graph/value_layout.h"

namespace strata {
namespace {

using testing::HasSubstr;

WeightId vector(GraphBuilder& graph, std::int64_t elements) {
  return graph.add_weight({"v", WeightRole::kVector, FormatId::F32, elements, 1, 1});
}

// Two convolutions of 12 channels and a scan of 3 heads of 2 channels and 4 elements.
Graph make() {
  GraphBuilder graph{Graph{}};
  const auto x =
      graph.embed(graph.add_weight({"t", WeightRole::kMatrix, FormatId::F32, 12, 8, 1}), 1.0f);
  ShortConvOp conv;
  conv.kernel = 4;
  conv.weight = vector(graph, 48);
  conv.in = x;
  conv.in = graph.short_conv(conv);
  const auto convolved = graph.short_conv(conv);
  SsmScanOp scan;
  scan.x = graph.slice(convolved, 0, 6);
  scan.dt = graph.slice(convolved, 6, 3);
  scan.b = graph.slice(convolved, 1, 2, 2);  // of each half
  scan.c = graph.slice(convolved, 8, 4);
  scan.a = vector(graph, 12);
  scan.d = vector(graph, 3);
  scan.heads = 3;
  scan.head_size = 2;
  scan.state_size = 4;
  return graph.finish(graph.select_logit_rows(graph.ssm_scan(scan))).value();
}

template <class T>
T& op(Graph& graph) {
  for (Op& op : graph.ops)
    if (auto* found = std::get_if<T>(&op)) return *found;
  throw std::logic_error("no such operation");
}

TEST(RecurrentGraph, LayersOfOneStateSizeShareACacheGroup) {
  const Graph graph = make();
  ASSERT_EQ(graph.cache_groups.size(), 2u);
  EXPECT_EQ(graph.cache_groups[0].spec.state_size, 36);
  EXPECT_EQ(graph.cache_groups[0].layers, 2);
  EXPECT_EQ(graph.cache_groups[1].spec.state_size, 24);
  EXPECT_EQ(graph.cache_groups[1].layers, 1);
}

TEST(RecurrentGraph, RefusesWhatADeviceWouldTrust) {
  const auto refuses = [](auto change, const char* why) {
    Graph graph = make();
    change(graph);
    EXPECT_THAT(validate(graph).message(), HasSubstr(why));
  };
  ASSERT_TRUE(validate(make()).ok());
  refuses([](Graph& g) { op<ShortConvOp>(g).kernel = 1; }, "two taps");
  refuses([](Graph& g) { op<ShortConvOp>(g).kernel = 5; }, "row length");
  refuses([](Graph& g) { op<ShortConvOp>(g).bias = op<SsmScanOp>(g).d; }, "row length");
  refuses([](Graph& g) { op<ShortConvOp>(g).slot.cache_layer = 2; }, "cache layer");
  refuses([](Graph& g) { op<ShortConvOp>(g).slot.cache_layer = -1; }, "cache layer");
  refuses([](Graph& g) { op<ShortConvOp>(g).slot.cache_group = 9; }, "cache group");
  refuses([](Graph& g) { op<ShortConvOp>(g).out = op<ShortConvOp>(g).in; }, "in place");
  refuses([](Graph& g) { op<SsmScanOp>(g).groups = 2; }, "groups");
  refuses([](Graph& g) { op<SsmScanOp>(g).groups = 0; }, "groups");
  refuses([](Graph& g) { op<SsmScanOp>(g).heads = 6; }, "width");
  refuses([](Graph& g) { op<SsmScanOp>(g).a = op<ShortConvOp>(g).weight; }, "row length");
  refuses([](Graph& g) { g.cache_groups[1].spec.state_size = 8; }, "another shape");
}

}  // namespace
}  // namespace strata
