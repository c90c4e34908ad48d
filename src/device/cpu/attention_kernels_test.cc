// Attention, cache and rotation kernels: every ISA against the scalar one, bit for bit, and against
// plain double arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <span>

#include "base/half.h"
#include "device/cpu/cache_layout.h"
#include "device/cpu/isa_select.h"
#include "device/cpu/kernels.h"
#include "device/cpu/test_support.h"

namespace strata {
namespace {

using testing::all_kernels;
using testing::expect_same_bits;
using testing::noise;

// A cache of shuffled blocks filled with random keys and values, and the attention over it.
struct AttentionCase {
  std::int32_t heads, head_size, value_size;
  Position last, first;
  float softcap;
  std::int32_t rows = 1;  // the last of them sees up to `last`, each before it one position less
};

std::string cache_name(CacheFormat format) {
  const char* const names[] = {"f32", "f16", "q8_0"};
  return names[static_cast<int>(format)];
}

class AttentionTest : public ::testing::TestWithParam<AttentionCase> {
 protected:
  void fill(CacheFormat format) {
    const auto& c = GetParam();
    const CacheSpec spec{1, c.head_size, c.value_size, 0};
    const CacheLayout layout(spec, format);
    block_bytes_ = cache_block_bytes({spec, 1}, format);
    const std::int32_t blocks = c.last / kBlockTokens + 1;
    // Bytes nobody wrote are NaNs, so that a read out of sight shows.
    cache_.assign(block_bytes_ * static_cast<Bytes>(blocks + 3), 0xff);
    table_.clear();
    for (std::int32_t i = 0; i < blocks; ++i) table_.push_back(BlockId{(i * 7 + 3) % blocks + 3});
    std::ranges::sort(table_, {}, [](BlockId b) { return (b.value * 31) % 17; });
    const auto tokens = static_cast<std::size_t>(c.last + 1);
    keys_ = noise(tokens * static_cast<std::size_t>(c.head_size), 5);
    values_ = noise(tokens * static_cast<std::size_t>(c.value_size), 6);
    query_ = noise(static_cast<std::size_t>(c.rows * c.heads * c.head_size), 9);
    for (Position p = 0; p <= c.last; ++p) store(p, format, layout);
  }

  // By the kernels of every ISA, which must write the same bytes.
  void store(Position p, CacheFormat format, const CacheLayout& layout) {
    const auto& c = GetParam();
    std::uint8_t* block =
        cache_.data() +
        static_cast<Bytes>(table_[static_cast<std::size_t>(p / 32)].value) * block_bytes_;
    float* key = keys_.data() + p * c.head_size;
    float* value = values_.data() + p * c.value_size;
    std::vector<std::uint8_t> first;
    const std::vector<std::uint8_t> before(block, block + block_bytes_);
    for (const KernelTable* k : all_kernels()) {
      std::ranges::copy(before, block);
      const CacheKernels& kernels = k->cache[static_cast<int>(format)];
      kernels.store_keys(key, c.head_size, p % 32, block);
      kernels.store_values(value, c.value_size, p % 32, block + layout.key_bytes);
      const std::vector<std::uint8_t> now(block, block + block_bytes_);
      if (first.empty()) first = now;
      EXPECT_EQ(now, first) << k->name << " " << cache_name(format);
    }
    round_as_stored(key, c.head_size, format);
    round_as_stored(value, c.value_size, format);
  }

  static void round_as_stored(float* x, std::int32_t n, CacheFormat format) {
    for (std::int32_t i = 0; i < n && format == CacheFormat::kF16; ++i)
      x[i] = f16_to_f32(f32_to_f16(x[i]));
    for (std::int32_t i = 0; i < n && format == CacheFormat::kQ8_0; i += 32) {
      const auto group =
          std::span(x, static_cast<std::size_t>(n))
              .subspan(static_cast<std::size_t>(i), static_cast<std::size_t>(std::min(32, n - i)));
      float top = 0;
      for (const float v : group) top = std::max(top, std::fabs(v));
      const float scale = f16_to_f32(f32_to_f16(top / 127.0f));
      for (float& v : group) v = std::nearbyint(v * (127.0f / top)) * scale;
    }
  }

  // Rows in tiles of `tile_rows`, whose outputs follow each other.
  std::vector<float> run(const KernelTable& kernels, CacheFormat format, std::int32_t tile_rows) {
    const auto& c = GetParam();
    const CacheLayout layout({1, c.head_size, c.value_size, 0}, format);
    std::vector<PositionRange> seen;
    for (std::int32_t row = 0; row < c.rows; ++row)
      seen.push_back({c.first - std::min(c.first, c.rows - 1 - row), c.last - (c.rows - 1 - row)});
    std::vector<float> out(static_cast<std::size_t>(c.rows * c.heads * c.value_size));
    std::vector<AttentionStatistics> statistics(static_cast<std::size_t>(c.rows * c.heads));
    for (std::int32_t row = 0; row < c.rows; row += tile_rows) {
      AttentionTask task;
      task.rows = std::min(tile_rows, c.rows - row);
      task.query_heads = c.heads;
      task.head_size = c.head_size;
      task.value_size = c.value_size;
      task.query_stride = c.heads * c.head_size;
      task.query = query_.data() + row * task.query_stride;
      task.seen = seen.data() + row;
      task.cache = cache_.data();
      task.table = table_.data();
      task.block_bytes = block_bytes_;
      task.value_offset = layout.key_bytes;
      task.scale = 0.3f;
      task.softcap = c.softcap;
      task.out_stride = c.heads * c.value_size;
      task.out = out.data() + row * task.out_stride;
      task.statistics = statistics.data() + row * c.heads;
      task.statistics_stride = c.heads;
      attend(kernels, format, task);
    }
    return out;
  }

  static void attend(const KernelTable& kernels, CacheFormat format, const AttentionTask& task) {
    const std::int32_t queries = task.rows * task.query_heads;
    std::vector<float> scores(static_cast<std::size_t>(attention_scores_size(queries)));
    std::vector<float> partial(
        static_cast<std::size_t>(attention_partial_size(queries, task.value_size)));
    for (Position p = task.seen[0].first / kAttentionPartition * kAttentionPartition;
         p <= task.seen[task.rows - 1].last; p += kAttentionPartition) {
      kernels.cache[static_cast<int>(format)].attention(task, p, scores.data(), partial.data());
      kernels.attention_fold(task, p, partial.data());
    }
    kernels.attention_finish(task);
  }

  double expected(std::int32_t row, std::int32_t head, std::int32_t d) const {
    const auto& c = GetParam();
    const std::int32_t behind = c.rows - 1 - row;
    double sum = 0, weighted = 0;
    for (Position p = c.first - std::min(c.first, behind); p <= c.last - behind; ++p) {
      double dot = 0;
      for (std::int32_t i = 0; i < c.head_size; ++i)
        dot += double{query_[static_cast<std::size_t>((row * c.heads + head) * c.head_size + i)]} *
               keys_[static_cast<std::size_t>(p * c.head_size + i)];
      dot *= 0.3f;
      if (c.softcap > 0) dot = c.softcap * std::tanh(dot / c.softcap);
      sum += std::exp(dot);
      weighted += std::exp(dot) * values_[static_cast<std::size_t>(p * c.value_size + d)];
    }
    return weighted / sum;
  }

  Bytes block_bytes_ = 0;
  std::vector<std::uint8_t> cache_;
  std::vector<BlockId> table_;
  std::vector<float> keys_, values_, query_;
};

TEST_P(AttentionTest, MatchesDoubleArithmeticAndEveryIsaAndTileBitForBit) {
  const auto& c = GetParam();
  for (const CacheFormat format : {CacheFormat::kF32, CacheFormat::kF16, CacheFormat::kQ8_0}) {
    SCOPED_TRACE(cache_name(format));
    fill(format);
    const auto scalar = run(kScalarKernels, format, 1);
    for (std::int32_t row = 0; row < c.rows; row += 5)
      for (std::int32_t h = 0; h < c.heads; ++h)
        for (std::int32_t d = 0; d < c.value_size; ++d)
          EXPECT_NEAR(scalar[static_cast<std::size_t>((row * c.heads + h) * c.value_size + d)],
                      expected(row, h, d), 2e-5);
    for (const KernelTable* k : all_kernels())
      for (const std::int32_t tile_rows : {1, 2, kTileQueries / c.heads})
        expect_same_bits(run(*k, format, tile_rows), scalar);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionTest,
    ::testing::Values(AttentionCase{1, 64, 64, 0, 0, 0}, AttentionCase{3, 64, 64, 5, 0, 0},
                      AttentionCase{4, 32, 32, 255, 0, 0}, AttentionCase{5, 32, 32, 256, 0, 0},
                      AttentionCase{2, 80, 80, 700, 0, 50}, AttentionCase{8, 16, 24, 600, 89, 0},
                      AttentionCase{1, 128, 60, 511, 500, 0}, AttentionCase{6, 10, 6, 300, 257, 0},
                      AttentionCase{4, 64, 64, 290, 0, 0, 40},
                      AttentionCase{7, 40, 48, 530, 270, 0, 21},
                      AttentionCase{1, 32, 36, 300, 40, 20, 45}));

TEST(RotationKernels, RotationsAreThoseOfThePlane) {
  for (const std::int64_t pairs : {1, 3, 4, 5, 8, 13, 32}) {
    const auto n = static_cast<std::size_t>(pairs);
    const auto x = noise(2 * n, 1), cos = noise(n, 2), sin = noise(n, 3);
    std::vector<float> halves(2 * n), adjacent(2 * n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto turn = [&](float a, float b, float& first, float& second) {
        first = a * cos[i] - b * sin[i];
        second = a * sin[i] + b * cos[i];
      };
      turn(x[i], x[n + i], halves[i], halves[n + i]);
      turn(x[2 * i], x[2 * i + 1], adjacent[2 * i], adjacent[2 * i + 1]);
    }
    for (const KernelTable* k : all_kernels()) {
      auto got = x;
      k->rotate_halves(got.data(), cos.data(), sin.data(), pairs);
      expect_same_bits(got, halves);
      got = x;
      k->rotate_adjacent(got.data(), cos.data(), sin.data(), pairs);
      expect_same_bits(got, adjacent);
    }
  }
}

}  // namespace
}  // namespace strata
