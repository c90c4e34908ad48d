// How the attention of a step is divided: into tiles, a tile into partitions of positions, and
// these among workers. Which worker computes a partition changes no result.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <variant>

#include "device/cpu/kernels.h"
#include "device/device.h"

namespace strata {

// Rows of one slice times query heads that share a key/value head.
struct AttentionTile {
  std::int32_t slice = 0;
  std::int32_t row = 0;  // of the step
  std::int32_t rows = 0;
  std::int32_t head = 0;
  std::int32_t heads = 0;
  std::int32_t first_partition = 0;
  std::int32_t last_partition = 0;  // inclusive

  std::int32_t queries() const { return rows * heads; }
};

// Positions that a slice's row sees.
inline PositionRange visible_positions(const AttentionOp& op, const StepSlice& slice,
                                       std::int32_t row) {
  const Position position = slice.first + row - slice.first_row;
  return {op.window > 0 && position >= op.window ? position - op.window + 1 : 0,
          op.causal ? position : slice.first + slice.rows - 1};
}

// Calls f(tile) for all tiles; those that read the same keys and values come one after the other.
template <class F>
void each_tile(const AttentionOp& op, std::span<const StepSlice> slices, F f) {
  const std::int32_t shared = op.heads / op.kv_heads;
  AttentionTile tile;
  for (const StepSlice& slice : slices) {
    for (tile.head = 0; tile.head < op.heads; tile.head += tile.heads) {
      tile.heads = std::min(kUnitHeads, shared - tile.head % shared);
      const std::int32_t end = slice.first_row + slice.rows;
      for (tile.row = slice.first_row; tile.row < end; tile.row += tile.rows) {
        tile.rows = std::min(kTileQueries / tile.heads, end - tile.row);
        tile.first_partition = visible_positions(op, slice, tile.row).first / kAttentionPartition;
        tile.last_partition =
            visible_positions(op, slice, tile.row + tile.rows - 1).last / kAttentionPartition;
        f(tile);
      }
    }
    ++tile.slice;
  }
}

// A tile's partitions in one round, and which worker computes each.
struct TilePart {
  AttentionTile tile;
  std::int32_t first = 0;  // partitions
  std::int32_t last = 0;   // exclusive
  std::int64_t start = 0;  // cost of all parts before this one
  std::int64_t total = 0;  // cost of all parts of the round
  int workers = 1;

  // Reading a partition costs about as much as computing four queries.
  std::int64_t partition_cost() const { return tile.queries() + 4; }
  std::int64_t cost() const { return (last - first) * partition_cost(); }

  // Ascends with the partition. Tiles of more than kUnitHeads queries stay whole.
  int owner(std::int32_t partition) const {
    const std::int64_t before =
        tile.queries() <= kUnitHeads ? (partition - first) * partition_cost() : cost() / 2;
    return static_cast<int>((start + before) * workers / total);
  }
  bool shared() const { return owner(first) != owner(last - 1); }
};

// A round takes the partitions [first, first + kRoundPartitions) of all tiles, which bounds how
// many partial results wait to be folded.
constexpr std::int32_t kRoundPartitions = 32;

template <class F>
void each_part(const AttentionOp& op, std::span<const StepSlice> slices, std::int32_t first,
               int workers, F f) {
  TilePart part;
  part.workers = workers;
  const auto each = [&](auto use) {
    each_tile(op, slices, [&](const AttentionTile& tile) {
      part.tile = tile;
      part.first = std::max(first, tile.first_partition);
      part.last = std::min(first + kRoundPartitions, tile.last_partition + 1);
      if (part.first < part.last) use();
    });
  };
  each([&] { part.total += part.cost(); });
  each([&] {
    f(std::as_const(part));
    part.start += part.cost();
  });
}

// The memory that the workers share: statistics of every row and head, and for each worker the
// partial results of a tile that another one began.
class AttentionMemory {
 public:
  AttentionMemory(const Graph& graph, const StepLimits& limits, int workers) {
    for (const Op& op : graph.ops) {
      const auto* attention = std::get_if<AttentionOp>(&op);
      if (attention == nullptr) continue;
      heads_ = std::max<std::int64_t>(heads_, attention->heads);
      partial_ = std::max(partial_, attention_partial_size(kUnitHeads, attention->value_size));
    }
    statistics_ = limits.rows * heads_;
    partials_ = workers > 1 ? workers * kRoundPartitions * partial_ : 0;
  }

  Bytes bytes() const {
    return static_cast<Bytes>(statistics_) * sizeof(AttentionStatistics) +
           static_cast<Bytes>(partials_) * sizeof(float);
  }
  std::int64_t heads() const { return heads_; }
  AttentionStatistics* statistics(const Buffer& memory, std::int64_t row) const {
    return reinterpret_cast<AttentionStatistics*>(memory.data()) + row * heads_;
  }
  float* partial(const Buffer& memory, int worker, std::int32_t partition) const {
    return reinterpret_cast<float*>(statistics(memory, 0) + statistics_) +
           (std::int64_t{worker} * kRoundPartitions + partition % kRoundPartitions) * partial_;
  }

 private:
  std::int64_t heads_ = 0;
  std::int64_t partial_ = 0;
  std::int64_t statistics_ = 0;
  std::int64_t partials_ = 0;
};

}  // namespace strata
