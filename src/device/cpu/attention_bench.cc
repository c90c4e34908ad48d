// Attention at depth and over prompts, through the kernel table of each ISA this machine runs:
// bytes of cache read per second beside a plain read of the same bytes, and arithmetic per second.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <vector>

#include "device/cpu/cache_layout.h"
#include "device/cpu/isa_select.h"

namespace strata {
namespace {

constexpr std::int32_t kDepth = 8192;
constexpr std::int32_t kLayers = 4;
constexpr std::int32_t kPromptRows = 64;

struct Shape {
  const char* name;
  std::int32_t heads, kv_heads, head_size, value_size;
  bool values_in_keys;
};
constexpr Shape kShapes[] = {{"grouped4x128", 32, 8, 128, 128, false},
                             {"grouped8x64", 64, 8, 64, 64, false},
                             {"single64", 16, 16, 64, 64, false},
                             {"latent576", 16, 1, 576, 512, true}};

// The cache of one sequence, filled, and queries for its last rows.
class Workload {
 public:
  Workload(const Shape& shape, CacheFormat format)
      : shape_(shape),
        spec_{shape.kv_heads, shape.head_size, shape.values_in_keys ? 0 : shape.value_size, 0, 0},
        format_(format),
        layout_(spec_, format),
        block_bytes_(cache_block_bytes({spec_, kLayers}, format)),
        cache_(block_bytes_ * kDepth / kBlockTokens),
        table_(kDepth / kBlockTokens),
        query_(static_cast<std::size_t>(kPromptRows * shape.heads * shape.head_size), 0.25f),
        out_(static_cast<std::size_t>(kPromptRows * shape.heads * shape.value_size)),
        statistics_(static_cast<std::size_t>(kPromptRows * shape.heads)) {
    for (std::size_t i = 0; i < table_.size(); ++i) table_[i].value = static_cast<std::int32_t>(i);
    for (std::int32_t row = 0; row < kPromptRows; ++row)
      seen_.push_back({0, kDepth - kPromptRows + row});
    fill();
  }

  double bytes() const { return static_cast<double>(cache_.size()); }
  double prompt_operations() const {
    return 2.0 * kPromptRows * shape_.heads * (shape_.head_size + shape_.value_size) * kDepth;
  }

  // Worker `index` of `count` computes the last `rows` rows of a layer.
  void attend(const KernelTable& kernels, std::int32_t layer, std::int32_t rows, int index,
              int count) {
    const std::int32_t shared = shape_.heads / shape_.kv_heads;
    std::int32_t unit = 0;
    for (std::int32_t head = 0, heads = 0; head < shape_.heads; head += heads, ++unit) {
      heads = std::min(kUnitHeads, shared - head % shared);
      if (unit % count != index) continue;
      for (std::int32_t row = kPromptRows - rows, n = 0; row < kPromptRows; row += n) {
        n = std::min(kTileQueries / heads, kPromptRows - row);
        run(kernels, task(layer, head, heads, row, n));
      }
    }
  }

  std::int64_t read(int index, int count) const {
    const auto* words = reinterpret_cast<const std::int64_t*>(cache_.data());
    const auto share = static_cast<std::int64_t>(cache_.size()) / 8 / count;
    return std::reduce(words + index * share, words + (index + 1) * share);
  }

 private:
  void fill() {
    const CacheKernels& kernels = kScalarKernels.cache[static_cast<int>(format_)];
    std::vector<float> vector(static_cast<std::size_t>(std::max(spec_.key_size, spec_.value_size)));
    for (std::size_t i = 0; i < vector.size(); ++i)
      vector[i] = static_cast<float>(i % 17) / 16 - 0.5f;
    std::vector<std::uint8_t> head(layout_.head_bytes);
    for (int token = 0; token < kBlockTokens; ++token) {
      kernels.store_keys(vector.data(), spec_.key_size, token, head.data());
      if (spec_.value_size > 0)
        kernels.store_values(vector.data(), spec_.value_size, token,
                             head.data() + layout_.key_bytes);
    }
    for (Bytes at = 0; at < cache_.size(); at += layout_.head_bytes)
      std::ranges::copy(head, cache_.data() + at);
  }

  AttentionTask task(std::int32_t layer, std::int32_t head, std::int32_t heads, std::int32_t row,
                     std::int32_t rows) {
    AttentionTask t;
    t.query_stride = shape_.heads * shape_.head_size;
    t.query = query_.data() + row * t.query_stride + head * shape_.head_size;
    t.rows = rows;
    t.query_heads = heads;
    t.head_size = shape_.head_size;
    t.value_size = shape_.value_size;
    t.seen = seen_.data() + row;
    t.cache = cache_.data() + layout_.head_offset(layer, head * shape_.kv_heads / shape_.heads);
    t.table = table_.data();
    t.block_bytes = block_bytes_;
    t.value_offset = shape_.values_in_keys ? 0 : layout_.key_bytes;
    t.scale = 0.1f;
    t.softcap = 0;
    t.out_stride = shape_.heads * shape_.value_size;
    t.out = out_.data() + row * t.out_stride + head * shape_.value_size;
    t.statistics = statistics_.data() + row * shape_.heads + head;
    t.statistics_stride = shape_.heads;
    t.values_in_keys = shape_.values_in_keys;
    return t;
  }

  void run(const KernelTable& kernels, const AttentionTask& task) const {
    const std::int32_t queries = task.rows * task.query_heads;
    std::vector<float> scores(static_cast<std::size_t>(attention_scores_size(queries)));
    std::vector<float> partial(
        static_cast<std::size_t>(attention_partial_size(queries, task.value_size)));
    for (Position p = 0; p < kDepth; p += kAttentionPartition) {
      kernels.cache[static_cast<int>(format_)].attention(task, p, scores.data(), partial.data());
      kernels.attention_fold(task, p, partial.data());
    }
    kernels.attention_finish(task);
  }

  const Shape shape_;
  const CacheSpec spec_;
  const CacheFormat format_;
  const CacheLayout layout_;
  const Bytes block_bytes_;
  std::vector<std::uint8_t> cache_;
  std::vector<BlockId> table_;
  std::vector<float> query_, out_;
  std::vector<PositionRange> seen_;
  std::vector<AttentionStatistics> statistics_;
};

// The threads of a benchmark share one workload, which lives no longer than it.
template <class F>
void add(const std::string& name, const Shape& shape, CacheFormat format, F body) {
  const auto work = std::make_shared<std::unique_ptr<Workload>>();
  const auto measure = [=](benchmark::State& state) {
    if (state.thread_index() == 0) *work = std::make_unique<Workload>(shape, format);
    for (auto _ : state) body(state, **work);
    if (state.thread_index() == 0) work->reset();
  };
  benchmark::RegisterBenchmark(name.c_str(), measure)
      ->ThreadRange(1, 2)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

// An iteration of all threads together does `total` of something.
void count_each(benchmark::State& state, const char* what, double total) {
  state.counters[what] =
      benchmark::Counter(total / state.threads(), benchmark::Counter::kIsIterationInvariantRate);
}

void add_all(const Shape& shape, CacheFormat format, const std::string& suffix) {
  add("read" + suffix, shape, format, [](benchmark::State& state, const Workload& work) {
    benchmark::DoNotOptimize(work.read(state.thread_index(), state.threads()));
    count_each(state, "bytes", work.bytes());
  });
  for (const Isa isa : runnable_isas()) {
    const KernelTable* kernels = *select_kernels(isa);
    add("generate" + suffix + "/" + kernels->name, shape, format,
        [=](benchmark::State& state, Workload& work) {
          for (std::int32_t layer = 0; layer < kLayers; ++layer)
            work.attend(*kernels, layer, 1, state.thread_index(), state.threads());
          count_each(state, "bytes", work.bytes());
        });
    add("prompt" + suffix + "/" + kernels->name, shape, format,
        [=](benchmark::State& state, Workload& work) {
          work.attend(*kernels, 0, kPromptRows, state.thread_index(), state.threads());
          count_each(state, "operations", work.prompt_operations());
        });
  }
}

const int kRegistered = [] {
  for (const Shape& shape : kShapes) {
    add_all(shape, CacheFormat::kF16, std::string("/") + shape.name + "/f16");
    add_all(shape, CacheFormat::kQ8_0, std::string("/") + shape.name + "/q8_0");
  }
  return 0;
}();

}  // namespace
}  // namespace strata
