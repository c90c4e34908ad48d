// Weight rows as kernels see them: a cell is as many rows as a vocabulary has lanes.
#pragma once

#include "device/cpu/kernels.h"
#include "formats/format.h"

namespace strata {

// Writes the chunks of field kIndex and those after it of one plain block to their lane. Only
// constant expressions touch the array of fields, whose members would be exported symbols.
template <class V, class F, std::size_t kIndex = 0>
void gather_fields(const std::uint8_t* source, int lane, std::uint8_t* out) {
  if constexpr (kIndex < F::kFields.size()) {
    constexpr Field field = F::kFields[kIndex];
    for (int c = 0; c < field.bytes / field.chunk; ++c)
      for (int i = 0; i < field.chunk; ++i)
        out[(c * kLanes + lane) * field.chunk + i] = source[c * field.chunk + i];
    gather_fields<V, F, kIndex + 1>(source + field.bytes, lane, out + field.bytes * kLanes);
  }
}

// One block of fewer than eight plain rows in the interleaved layout; rows that are not there are
// zero.
template <class V, class F>
void gather_block(const std::uint8_t* rows, std::int64_t row_bytes, int count, std::int64_t block,
                  std::uint8_t* out) {
  for (int i = 0; i < F::kBytes * kLanes; ++i) out[i] = 0;
  for (int lane = 0; lane < kLanes; ++lane)
    if (lane < count) gather_fields<V, F>(rows + lane * row_bytes + block * F::kBytes, lane, out);
}

// Rows [row, row + count()) of a task's weights. Lanes behind them repeat others or are zero.
template <class V, class F>
class Cell {
 public:
  static constexpr int kGroups = V::kWidth / kLanes;

  void start(const MatMulTask& task, std::int64_t row) {
    const std::int64_t left = task.last_row - row;
    row_bytes_ = task.columns / F::kElements * F::kBytes;
    count_ = left < V::kWidth ? static_cast<int>(left) : V::kWidth;
    for (int g = 0; g < kGroups; ++g) {
      const bool there = g * kLanes < count_;
      groups_[g] = task.weights + (there ? row + g * kLanes : row) * row_bytes_;
    }
    plain_ = count_ % kLanes;
    whole_ = V::weights(groups_);
  }

  int count() const { return count_; }

  // Block b of the rows; valid until the next call.
  [[gnu::always_inline]] typename V::Weights block(std::int64_t b) {
    if (plain_ == 0) return V::advance(whole_, static_cast<std::size_t>(b) * F::kBytes * kLanes);
    return gathered(b);
  }

  // Asks for what comes some time after block b. Processors follow a stream by themselves, but not
  // far enough, and not across pages.
  // `cells` of them are read side by side, so that behind a group comes one of the next cells.
  [[gnu::always_inline]] void prefetch(std::int64_t b, int cells) const {
    constexpr std::int64_t kAhead = 4096;
    if (kBlock < kLine && b * kBlock % kLine != 0) return;
    const std::int64_t size = kLanes * row_bytes_;
    const std::int64_t offset = b * kBlock + kAhead;
    fetch(offset < size ? offset : offset + (cells * kGroups - 1) * size, kBlock);
  }
  // Asks for blocks [b, b + count), or, behind the last, for the first of `rows` rows further on.
  void prefetch_panel(std::int64_t b, std::int64_t count, std::int64_t rows) const {
    const std::int64_t size = kLanes * row_bytes_;
    fetch(b * kBlock < size ? b * kBlock : rows * row_bytes_, count * kBlock);
  }

 private:
  static constexpr std::int64_t kBlock = F::kBytes * kLanes, kLine = 64;

  [[gnu::always_inline]] void fetch(std::int64_t offset, std::int64_t bytes) const {
    for (const std::uint8_t* group : groups_)
      for (std::int64_t i = 0; i < bytes; i += kLine) __builtin_prefetch(group + offset + i);
  }

  [[gnu::noinline]] typename V::Weights gathered(std::int64_t b) {
    const std::uint8_t* groups[kGroups];
    for (int g = 0; g < kGroups; ++g) groups[g] = groups_[g] + b * F::kBytes * kLanes;
    gather_block<V, F>(groups_[count_ / kLanes], row_bytes_, plain_, b, buffer_);
    for (int g = count_ / kLanes; g < kGroups; ++g) groups[g] = buffer_;
    return V::weights(groups);
  }

  std::int64_t row_bytes_;
  int count_;
  int plain_;  // rows that make no whole group
  const std::uint8_t* groups_[kGroups];
  typename V::Weights whole_;
  alignas(64) std::uint8_t buffer_[F::kBytes * kLanes];
};

// The first `count` lanes at p, or of `lanes` to there.
template <class V>
[[gnu::always_inline]] inline typename V::F32 load_lanes(const float* p, int count) {
  if (count == V::kWidth) return V::load(p);
  float lanes[V::kWidth] = {};
  for (int lane = 0; lane < count; ++lane) lanes[lane] = p[lane];
  return V::load(lanes);
}
template <class V>
[[gnu::always_inline]] inline void store_lanes(float* p, int count, typename V::F32 lanes) {
  if (count == V::kWidth) return V::store(p, lanes);
  float each[V::kWidth];
  V::store(each, lanes);
  for (int lane = 0; lane < count; ++lane) p[lane] = each[lane];
}

}  // namespace strata
