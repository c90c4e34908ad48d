#include "device/fake/fake_device.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace strata {
namespace {

constexpr std::uint64_t kPrime = 0x100000001b3;  // FNV-1a
constexpr std::uint64_t kBasis = 0xcbf29ce484222325;

std::uint64_t mix(std::uint64_t hash, TokenId token) {
  return (hash ^ static_cast<std::uint64_t>(token)) * kPrime;
}

TokenId token_of(std::uint64_t hash, std::int32_t vocabulary) {
  return static_cast<TokenId>((hash >> 17) % static_cast<std::uint64_t>(vocabulary));
}

constexpr Bytes kMemory = Bytes{1} << 38;

bool is_state(const SegmentSpec& spec, std::size_t group) {
  return spec.graph->cache_groups[group].spec.state_size > 0;
}

struct FakeSegment final : Segment {
  SegmentSpec spec;
  std::vector<std::uint64_t> row_hashes;  // of the step's rows: what their states have seen
  std::vector<float> logits;
};

class FakeDevice final : public Device {
 public:
  DeviceInfo info() const override { return {"fake", true}; }

  Result<Buffer> allocate(Bytes bytes) override {
    // A sanitizer's calloc stops the process where the system's returns null.
    if (bytes > kMemory) return resource_exhausted("{} bytes of memory are not to be had", bytes);
    std::shared_ptr<std::uint8_t> data(static_cast<std::uint8_t*>(std::calloc(bytes, 1)),
                                       std::free);
    if (!data) return resource_exhausted("{} bytes of memory are not to be had", bytes);
    return Buffer(data.get(), bytes, data);
  }

  Status prepare(FormatId, std::int64_t, SliceRows, std::span<const std::uint8_t> source,
                 std::uint8_t* destination) override {
    std::ranges::copy(source, destination);
    return {};
  }

  Status prepare_vector(FormatId, std::int64_t, std::span<const std::uint8_t>,
                        std::uint8_t*) override {
    return {};
  }

  Result<std::unique_ptr<Segment>> bind(const SegmentSpec& spec) override {
    for (std::size_t g = 0; g < spec.caches.size(); ++g)
      if (spec.caches[g].block_bytes <
          (is_state(spec, g) ? sizeof(std::uint64_t) : kBlockTokens * sizeof(TokenId)))
        return internal_error("cache blocks are too small to hold tokens");
    auto segment = std::make_unique<FakeSegment>();
    segment->spec = spec;
    segment->logits.resize(static_cast<std::size_t>(spec.limits.logit_rows) *
                           static_cast<std::size_t>(spec.graph->output_width()));
    return std::unique_ptr<Segment>(std::move(segment));
  }

  Result<Bytes> segment_bytes(const Graph& graph, const StepLimits& limits) const override {
    return static_cast<Bytes>(limits.logit_rows) * static_cast<Bytes>(graph.output_width()) *
           sizeof(float);
  }

  Status copy_block(const CacheView& cache, BlockId from, BlockId to) override {
    const auto in_range = [&](BlockId id) { return id.value >= 0 && id.value < cache.blocks; };
    if (!in_range(from) || !in_range(to)) return internal_error("copy of a block out of range");
    std::memcpy(cache.data + static_cast<Bytes>(to.value) * cache.block_bytes,
                cache.data + static_cast<Bytes>(from.value) * cache.block_bytes, cache.block_bytes);
    return {};
  }

  Result<std::span<const float>> run(Segment& base, const StepInputs& inputs) override;
};

std::uint8_t* slot(const CacheView& cache, const std::span<const BlockId>& table, Position p) {
  const BlockId id = table[static_cast<std::size_t>(p / kBlockTokens)];
  return cache.data + static_cast<Bytes>(id.value) * cache.block_bytes +
         static_cast<Bytes>(p % kBlockTokens) * sizeof(TokenId);
}

std::uint64_t hash_visible(const FakeSegment& segment, const StepSlice& slice, std::int32_t row) {
  const SegmentSpec& spec = segment.spec;
  const Position position = slice.first + row - slice.first_row;
  std::uint64_t hash = kBasis;
  for (std::size_t g = 0; g < spec.caches.size(); ++g) {
    if (is_state(spec, g)) {
      hash = (hash ^ segment.row_hashes[static_cast<std::size_t>(row)]) * kPrime;
      continue;
    }
    const std::int32_t window = spec.graph->cache_groups[g].spec.window;
    const Position first = window > 0 ? std::max(0, position - window + 1) : 0;
    const Position last = spec.graph->causal ? position : slice.first + slice.rows - 1;
    for (Position p = first; p <= last; ++p) {
      TokenId token;
      std::memcpy(&token, slot(spec.caches[g], slice.block_tables[g], p), sizeof token);
      hash = mix(hash, token);
    }
  }
  return hash;
}

// Keeps the rows' tokens in blocks; a state is a hash that each row takes further.
void store(FakeSegment& s, const StepInputs& inputs, const StepSlice& slice, std::size_t group) {
  const CacheView& cache = s.spec.caches[group];
  for (std::int32_t r = 0; r < slice.rows; ++r) {
    const auto row = static_cast<std::size_t>(slice.first_row + r);
    if (!is_state(s.spec, group)) {
      std::memcpy(slot(cache, slice.block_tables[group], slice.first + r), &inputs.tokens[row],
                  sizeof(TokenId));
      continue;
    }
    std::uint8_t* state = slot(cache, slice.block_tables[group], 0);
    std::uint64_t hash = kBasis;
    if (slice.first + r > 0) std::memcpy(&hash, state, sizeof hash);
    hash = mix(hash, inputs.tokens[row]);
    std::memcpy(state, &hash, sizeof hash);
    s.row_hashes[row] = s.row_hashes[row] * kPrime ^ hash;
  }
}

Result<std::span<const float>> FakeDevice::run(Segment& base, const StepInputs& inputs) {
  auto& s = static_cast<FakeSegment&>(base);
  STRATA_TRY(check_step(*s.spec.graph, s.spec.limits, inputs));
  s.row_hashes.assign(inputs.tokens.size(), 0);
  for (const StepSlice& slice : inputs.slices)
    for (std::size_t g = 0; g < s.spec.caches.size(); ++g) store(s, inputs, slice, g);
  const auto width = static_cast<std::size_t>(s.spec.graph->output_width());
  for (std::size_t i = 0; i < inputs.logit_rows.size(); ++i) {
    const std::int32_t row = inputs.logit_rows[i];
    const auto slice = std::ranges::find_if(
        inputs.slices, [&](const StepSlice& c) { return row < c.first_row + c.rows; });
    const auto hash = hash_visible(s, *slice, row);
    float* logits = s.logits.data() + i * width;
    std::fill(logits, logits + width, 0.0f);
    logits[token_of(hash, s.spec.graph->output_width())] = 20.0f;
  }
  return std::span<const float>(s.logits.data(), inputs.logit_rows.size() * width);
}

}  // namespace

std::unique_ptr<Device> make_fake_device() { return std::make_unique<FakeDevice>(); }

TokenId fake_next_token(std::span<const TokenId> visible, std::int32_t vocabulary) {
  std::uint64_t hash = kBasis;
  for (const TokenId token : visible) hash = mix(hash, token);
  return token_of(hash, vocabulary);
}

}  // namespace strata
