// What every device must do, on every device there is. A device adds itself to the list below.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "device/cpu/cpu_device.h"
#include "device/cpu/isa_select.h"
#include "device/fake/fake_device.h"
#include "formats/registry.h"
#include "models/all.h"
#include "tests/model_fixture.h"

namespace strata {
namespace {

struct DeviceCase {
  std::string name;
  std::function<std::unique_ptr<Device>()> make;
  bool hybrid = false;  // on a model some of whose layers keep a recurrent state
};

DeviceCase cpu_case(const std::string& isa, int threads) {
  const auto make = [=]() -> std::unique_ptr<Device> {
    auto device = make_cpu_device({threads, *isa_by_name(isa), false});
    return device.ok() ? std::move(device).value() : nullptr;
  };
  return {"cpu_" + isa + "_" + std::to_string(threads), make};
}

class DeviceConformance : public ::testing::TestWithParam<DeviceCase> {
 protected:
  void SetUp() override {
    device_ = GetParam().make();
    ASSERT_NE(device_, nullptr);
    const std::string path = folder_.path("tiny.gguf");
    testing::TinyShape shape;
    shape.hybrid = GetParam().hybrid;
    ASSERT_TRUE(testing::write_tiny_model(path, shape).ok());
    auto manifest = ModelManifest::open(path);
    ASSERT_TRUE(manifest.ok());
    manifest_ = std::move(manifest).value();
    auto graph = build_graph(manifest_);
    ASSERT_TRUE(graph.ok());
    graph_ = std::move(graph).value();
    const auto segment = device_->segment_bytes(graph_, kLimits);
    ASSERT_TRUE(segment.ok());
    DeviceCosts costs{kBlockTokens, {}, *segment};
    for (const CacheGroupSpec& group : graph_.cache_groups)
      costs.cache_block_bytes.push_back(cache_block_bytes(group, CacheFormat::kF16));
    auto plan = make_plan(graph_, {128, 2, kLimits}, costs, kGiB);
    ASSERT_TRUE(plan.ok());
    plan_ = std::move(plan).value();
    auto weights = WeightStore::load(manifest_, graph_, plan_, *device_, {});
    ASSERT_TRUE(weights.ok()) << weights.status().message();
    weights_ = std::move(weights).value();
  }

  // A segment on fresh cache blocks.
  struct Bound {
    std::vector<Buffer> buffers;
    std::vector<CacheView> caches;
    std::unique_ptr<Segment> segment;
  };
  Bound bind() {
    Bound bound;
    for (std::size_t g = 0; g < graph_.cache_groups.size(); ++g) {
      const Bytes block = cache_block_bytes(graph_.cache_groups[g], CacheFormat::kF16);
      auto buffer = device_->allocate(block * 8);
      EXPECT_TRUE(buffer.ok());
      bound.caches.push_back({buffer->data(), block, 8});
      bound.buffers.push_back(std::move(buffer).value());
    }
    auto segment =
        device_->bind({&graph_, weights_->views(), bound.caches, CacheFormat::kF16, kLimits});
    EXPECT_TRUE(segment.ok());
    bound.segment = std::move(segment).value();
    return bound;
  }

  // Logits after the last of `tokens`, whose blocks are `table`.
  std::vector<float> last_logits(Segment& segment, Position first, std::span<const TokenId> tokens,
                                 const std::vector<BlockId>& table) {
    StepSlice slice{0, static_cast<std::int32_t>(tokens.size()), first, {}};
    slice.block_tables.assign(graph_.cache_groups.size(), table);
    const std::int32_t row = slice.rows - 1;
    const auto logits = device_->run(segment, {tokens, {&slice, 1}, {&row, 1}});
    EXPECT_TRUE(logits.ok()) << logits.status().message();
    return {logits->begin(), logits->end()};
  }

  static constexpr StepLimits kLimits = {16, 4};
  testing::TemporaryFolder folder_;
  std::unique_ptr<Device> device_;
  ModelManifest manifest_;
  Graph graph_;
  PlacementPlan plan_;
  std::unique_ptr<WeightStore> weights_;
};

TEST_P(DeviceConformance, NamesItself) { EXPECT_FALSE(device_->info().name.empty()); }

TEST_P(DeviceConformance, AllocatesZeroedMemoryAndRefusesTheImpossible) {
  auto buffer = device_->allocate(100'000);
  ASSERT_TRUE(buffer.ok());
  ASSERT_EQ(buffer->bytes(), 100'000u);
  if (device_->info().host_memory) {
    EXPECT_EQ(std::accumulate(buffer->data(), buffer->data() + 100'000, 0), 0);
  }
  EXPECT_EQ(device_->allocate(Bytes{1} << 60).status().code(), StatusCode::kResourceExhausted);
}

TEST_P(DeviceConformance, RowsInPiecesGiveTheSameLogitsAsRowsTogether) {
  const std::vector<TokenId> tokens = {5, 9, 2, 77, 31, 8, 8, 1, 90, 4, 3};
  const std::vector<BlockId> table = {BlockId{6}};
  Bound together = bind();
  const auto expected = last_logits(*together.segment, 0, tokens, table);
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(graph_.vocabulary));
  Bound pieces = bind();
  std::vector<float> got;
  for (Position p = 0; p < 11; p += 3)
    got = last_logits(
        *pieces.segment, p,
        std::span(tokens).subspan(static_cast<std::size_t>(p), std::min<std::size_t>(3, 11 - p)),
        table);
  EXPECT_EQ(std::memcmp(got.data(), expected.data(), expected.size() * sizeof(float)), 0);
}

TEST_P(DeviceConformance, ACopiedBlockIsIndependentOfItsSource) {
  const std::vector<TokenId> tokens = {5, 9, 2, 77, 31};
  Bound bound = bind();
  (void)last_logits(*bound.segment, 0, tokens, {BlockId{1}});
  for (const CacheView& cache : bound.caches) {
    ASSERT_TRUE(device_->copy_block(cache, BlockId{1}, BlockId{4}).ok());
    ASSERT_TRUE(device_->copy_block(cache, BlockId{1}, BlockId{5}).ok());
  }
  const std::vector<TokenId> left = {10}, right = {11};
  const auto first = last_logits(*bound.segment, 5, left, {BlockId{1}});
  (void)last_logits(*bound.segment, 5, right, {BlockId{4}});
  const std::vector<TokenId> next = {12};
  const auto after = last_logits(*bound.segment, 6, next, {BlockId{1}});
  const auto other = last_logits(*bound.segment, 6, next, {BlockId{4}});
  EXPECT_NE(after, other);
  EXPECT_EQ(last_logits(*bound.segment, 5, left, {BlockId{5}}), first);
  // Keys and values of earlier positions stay where they are; a state has moved on.
  if (!GetParam().hybrid) {
    EXPECT_EQ(last_logits(*bound.segment, 5, left, {BlockId{1}}), first);
  }
  EXPECT_FALSE(device_->copy_block(bound.caches[0], BlockId{0}, BlockId{8}).ok());
  EXPECT_FALSE(device_->copy_block(bound.caches[0], BlockId{}, BlockId{0}).ok());
}

TEST_P(DeviceConformance, RefusesStepsBeyondItsLimitsAndTokensItDoesNotKnow) {
  Bound bound = bind();
  const std::vector<BlockId> table = {BlockId{0}};
  const auto attempt = [&](std::span<const TokenId> tokens,
                           std::span<const std::int32_t> logit_rows) {
    StepSlice slice{0, static_cast<std::int32_t>(tokens.size()), 0, {}};
    slice.block_tables.assign(graph_.cache_groups.size(), table);
    return device_->run(*bound.segment, {tokens, {&slice, 1}, logit_rows}).ok();
  };
  const std::vector<TokenId> good(16, 1), long_step(17, 1), unknown = {1, 96}, negative = {-1};
  const std::vector<std::int32_t> rows = {0, 1, 2, 3, 4};
  EXPECT_TRUE(attempt(good, std::span(rows).first(4)));
  EXPECT_TRUE(attempt(good, {}));
  EXPECT_FALSE(attempt(long_step, {}));
  EXPECT_FALSE(attempt(good, rows));
  EXPECT_FALSE(attempt(unknown, {}));
  EXPECT_FALSE(attempt(negative, {}));
}

TEST_P(DeviceConformance, RefusesPositionsWithoutEmbeddingAndHalvesOfWhatMustComeWhole) {
  Bound bound = bind();
  const std::vector<TokenId> tokens(4, 1);
  const std::vector<BlockId> table = {BlockId{0}};
  const auto attempt = [&](Position first) {
    StepSlice slice{0, 4, first, {}};
    slice.block_tables.assign(graph_.cache_groups.size(), table);
    return device_->run(*bound.segment, {tokens, {&slice, 1}, {}}).ok();
  };
  graph_.max_positions = 8;
  EXPECT_TRUE(attempt(4));
  EXPECT_FALSE(attempt(5));
  graph_.causal = false;
  EXPECT_TRUE(attempt(0));
  EXPECT_FALSE(attempt(4));
}

std::vector<DeviceCase> devices() {
  std::vector<DeviceCase> cases = {
      {"fake", make_fake_device}, cpu_case("scalar", 1), cpu_case("scalar", 3)};
  for (const std::string& name : isa_names()) {
    const Isa isa = *isa_by_name(name);
    if (isa != Isa::kScalar && std::ranges::count(runnable_isas(), isa) == 1)
      cases.push_back(cpu_case(name, 2));
  }
  for (std::size_t i = 0, count = cases.size(); i < count; ++i)
    cases.push_back({cases[i].name + "_hybrid", cases[i].make, true});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceConformance, ::testing::ValuesIn(devices()),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace strata
