// A long sequence's attention must not depend on how steps cut it, nor on how many workers share
// its partitions: bit for bit, in every cache format.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>

#include "device/cpu/attention_tiles.h"
#include "device/cpu/cpu_device.h"
#include "graph/builder.h"

namespace strata {
namespace {

constexpr std::int32_t kTokens = 509;
constexpr Position kContext = 8500;  // more than one round of partitions

struct Shape {
  std::int32_t heads, kv_heads, head_size, window;
};

class AttentionOverSteps : public ::testing::TestWithParam<Shape> {
 protected:
  AttentionOverSteps() {
    const auto [heads, kv_heads, head_size, window] = GetParam();
    Graph header;
    header.architecture = "test";
    header.vocabulary = kTokens;
    GraphBuilder builder(std::move(header));
    std::mt19937 random(3);
    std::normal_distribution<float> normal;
    const auto input = [&](std::int32_t width) {
      tables_.emplace_back(static_cast<std::size_t>(kTokens * width));
      for (float& x : tables_.back()) x = normal(random);
      return builder.embed(
          builder.add_weight({"", WeightRole::kMatrix, FormatId::F32, width, kTokens, 1}), 1.0f);
    };
    AttentionOp op;
    op.query = input(heads * head_size);
    op.key = input(kv_heads * head_size);
    op.value = input(kv_heads * head_size);
    op.heads = heads;
    op.kv_heads = kv_heads;
    op.head_size = op.value_size = head_size;
    op.window = window;
    op.scale = 0.5f;
    graph_ = builder.finish(builder.select_logit_rows(builder.attention(op))).value();
  }

  // The last four rows, of which the last `single` come one by one, the others together. The blocks
  // before them are copies of one.
  std::vector<float> last_rows(CacheFormat format, int threads, int single) {
    auto device = make_cpu_device({threads, Isa::kBest, false}).value();
    SegmentSpec spec;
    spec.graph = &graph_;
    spec.limits = {kBlockTokens, kBlockTokens};
    spec.cache_format = format;
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      const Weight& w = graph_.weights[i];
      const auto* plain = reinterpret_cast<const std::uint8_t*>(tables_[i].data());
      const Bytes size = tables_[i].size() * sizeof(float);
      buffers_.push_back(device->allocate(size).value());
      EXPECT_TRUE(device
                      ->prepare(w.format, w.columns, {0, w.rows, w.rows}, {plain, size},
                                buffers_.back().data())
                      .ok());
      spec.weights.push_back(
          {w.format, w.columns, w.rows, 1, {{buffers_.back().data(), 0, w.rows}}});
    }
    const auto blocks = ceil_div(kContext, kBlockTokens);
    const Bytes block = cache_block_bytes(graph_.cache_groups[0], format);
    buffers_.push_back(device->allocate(static_cast<Bytes>(blocks) * block).value());
    spec.caches.push_back({buffers_.back().data(), block, blocks});
    table_.clear();
    for (std::int32_t i = 0; i < blocks; ++i) table_.push_back(BlockId{blocks - 1 - i});
    auto segment = device->bind(spec).value();
    run(*device, *segment, 0, kBlockTokens);
    for (const BlockId id : std::span(table_).subspan(1))
      EXPECT_TRUE(device->copy_block(spec.caches[0], table_[0], id).ok());
    std::vector<float> out;
    for (Position first = kContext - 4; first < kContext;) {
      const std::int32_t rows = std::max(1, kContext - single - first);
      const auto got = run(*device, *segment, first, rows);
      out.insert(out.end(), got.begin(), got.end());
      first += rows;
    }
    return out;
  }

 private:
  std::span<const float> run(Device& device, Segment& segment, Position first, std::int32_t rows) {
    std::vector<TokenId> tokens;
    std::vector<std::int32_t> wanted;
    for (std::int32_t row = 0; row < rows; ++row) {
      tokens.push_back((first + row) * 31 % kTokens);
      wanted.push_back(row);
    }
    StepSlice slice{0, rows, first, {}};
    slice.block_tables.push_back(table_);
    const auto got = device.run(segment, {tokens, {&slice, 1}, wanted});
    EXPECT_TRUE(got.ok()) << got.status().message();
    return got.ok() ? *got : std::span<const float>();
  }

  Graph graph_;
  std::vector<std::vector<float>> tables_;
  std::vector<Buffer> buffers_;
  std::vector<BlockId> table_;
};

TEST_P(AttentionOverSteps, GivesTheSameBitsHoweverItIsDivided) {
  for (const CacheFormat format : {CacheFormat::kF32, CacheFormat::kF16, CacheFormat::kQ8_0}) {
    const auto expected = last_rows(format, 1, 4);
    const auto& shape = GetParam();
    ASSERT_EQ(expected.size(), static_cast<std::size_t>(4 * shape.heads * shape.head_size));
    for (const auto& [threads, single] : {std::pair{1, 0}, {2, 4}, {3, 1}, {5, 3}, {7, 0}}) {
      const auto got = last_rows(format, threads, single);
      ASSERT_EQ(got.size(), expected.size());
      EXPECT_EQ(std::memcmp(got.data(), expected.data(), got.size() * sizeof(float)), 0)
          << threads << " threads, cache format " << static_cast<int>(format);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOverSteps,
                         ::testing::Values(Shape{1, 1, 16, 0}, Shape{6, 2, 8, 0},
                                           Shape{4, 1, 16, 8300}));

// One sequence at a depth of 40 partitions and one at the start.
TEST(AttentionParts, GoToWorkersInOrderAndEachToOne) {
  AttentionOp op;
  op.heads = 12;
  op.kv_heads = 3;
  const StepSlice slices[] = {{0, 1, 10'000, {}}, {1, 20, 7, {}}};
  for (const int workers : {1, 2, 3, 64}) {
    std::vector<std::int64_t> partitions(2);
    bool shared = false;
    for (const std::int32_t first : {0, kRoundPartitions}) {
      int owner = 0;
      each_part(op, slices, first, workers, [&](const TilePart& part) {
        for (std::int32_t p = part.first; p < part.last; ++p) {
          EXPECT_GE(part.owner(p), owner);
          EXPECT_LT(part.owner(p), workers);
          owner = part.owner(p);
          partitions[static_cast<std::size_t>(part.tile.slice)] += part.tile.queries();
        }
        shared |= part.shared();
      });
    }
    EXPECT_EQ(partitions, (std::vector<std::int64_t>{12 * 40, 12 * 20}));
    EXPECT_EQ(shared, workers > 1);
  }
}

}  // namespace
}  // namespace strata
