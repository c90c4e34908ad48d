// Rotary embedding, cache writes and attention.
#include <algorithm>

#include "base/math.h"
#include "device/cpu/cache_layout.h"
#include "device/cpu/cpu_segment.h"

namespace strata {

void OpRunner::apply(const RopeTableOp& op) {
  const Rows out = rows(op.out);
  const std::vector<double>& frequencies = s_.rope_frequencies[op_index_];
  const auto count = static_cast<std::int64_t>(frequencies.size());
  each_row(out.count * count, [&](std::int64_t i) {
    const double position = s_.positions[static_cast<std::size_t>(i / count)];
    const double angle = position * frequencies[static_cast<std::size_t>(i % count)];
    float* cos = out.row(i / count) + i % count;
    cos[0] = static_cast<float>(op.magnitude * cos_f64(angle));
    cos[count] = static_cast<float>(op.magnitude * sin_f64(angle));
  });
}

void OpRunner::apply(const RopeOp& op) {
  const Rows table = rows(op.table);
  const Rows value = rows(op.value);
  const std::int32_t pairs = op.dimensions / 2;
  const std::int32_t head_size = value.width / op.heads;
  const auto rotate =
      op.style == RopeStyle::kHalves ? s_.kernels->rotate_halves : s_.kernels->rotate_adjacent;
  each_row(value.count * op.heads, [&](std::int64_t i) {
    const float* cos = table.row(i / op.heads);
    rotate(value.row(i / op.heads) + i % op.heads * head_size, cos, cos + pairs, pairs);
  });
}

void OpRunner::store_cache(const AttentionOp& op) {
  const auto group = static_cast<std::size_t>(op.cache_group);
  const CacheView& cache = s_.spec.caches[group];
  const CacheLayout layout(s_.spec.graph->cache_groups[group].spec, s_.spec.cache_format);
  const CacheKernels& kernels = s_.kernels->cache[static_cast<int>(s_.spec.cache_format)];
  each_row(std::int64_t{s_.rows} * op.kv_heads, [&](std::int64_t i) {
    const std::int64_t row = i / op.kv_heads, head = i % op.kv_heads;
    const StepSlice& slice =
        in_.slices[static_cast<std::size_t>(s_.slice_of[static_cast<std::size_t>(row)])];
    const Position position = s_.positions[static_cast<std::size_t>(row)];
    const BlockId id = slice.block_tables[group][static_cast<std::size_t>(position / kBlockTokens)];
    std::uint8_t* keys = cache.data + static_cast<Bytes>(id.value) * cache.block_bytes +
                         layout.head_offset(op.cache_layer, static_cast<std::int32_t>(head));
    const int token = position % kBlockTokens;
    kernels.store_keys(rows(op.key).row(row) + head * op.head_size, op.head_size, token, keys);
    if (op.value.valid())
      kernels.store_values(rows(op.value).row(row) + head * op.value_size, op.value_size, token,
                           keys + layout.key_bytes);
  });
}

AttentionTask OpRunner::attention_task(const AttentionOp& op, const AttentionTile& tile,
                                       PositionRange* seen) const {
  const auto group = static_cast<std::size_t>(op.cache_group);
  const CacheView& cache = s_.spec.caches[group];
  const CacheLayout layout(s_.spec.graph->cache_groups[group].spec, s_.spec.cache_format);
  const StepSlice& slice = in_.slices[static_cast<std::size_t>(tile.slice)];
  const Rows query = rows(op.query), out = rows(op.out);
  for (std::int32_t i = 0; i < tile.rows; ++i) seen[i] = visible_positions(op, slice, tile.row + i);
  AttentionTask task;
  task.query = query.row(tile.row) + tile.head * op.head_size;
  task.query_stride = query.stride;
  task.rows = tile.rows;
  task.query_heads = tile.heads;
  task.head_size = op.head_size;
  task.value_size = op.value_size;
  task.seen = seen;
  task.cache =
      cache.data + layout.head_offset(op.cache_layer, tile.head / (op.heads / op.kv_heads));
  task.table = slice.block_tables[group].data();
  task.block_bytes = cache.block_bytes;
  task.value_offset = op.value.valid() ? layout.key_bytes : 0;
  task.scale = op.scale;
  task.softcap = op.softcap;
  task.out = out.row(tile.row) + tile.head * op.value_size;
  task.out_stride = out.stride;
  task.statistics = s_.attention_memory.statistics(s_.attention, tile.row) + tile.head;
  task.statistics_stride = s_.attention_memory.heads();
  if (op.sinks) task.sinks = vector(*op.sinks) + tile.head;
  task.values_in_keys = !op.value.valid();
  return task;
}

void OpRunner::attend(const AttentionOp& op, const TilePart& part) {
  const int self = w_.index();
  if (part.owner(part.first) > self || part.owner(part.last - 1) < self) return;
  PositionRange seen[kTileQueries];
  const AttentionTask task = attention_task(op, part.tile, seen);
  const CacheKernels& kernels = s_.kernels->cache[static_cast<int>(s_.spec.cache_format)];
  const bool begun = part.owner(part.first) == self;
  float* scores = scratch_.floats.data();
  float* own = scores + attention_scores_size(part.tile.queries());
  for (std::int32_t p = part.first; p < part.last; ++p) {
    if (part.owner(p) != self) continue;
    float* partial = begun ? own : s_.attention_memory.partial(s_.attention, self, p);
    kernels.attention(task, p * kAttentionPartition, scores, partial);
    if (begun) s_.kernels->attention_fold(task, p * kAttentionPartition, partial);
  }
  if (begun && !part.shared() && part.last > part.tile.last_partition)
    s_.kernels->attention_finish(task);
}

void OpRunner::join(const AttentionOp& op, const TilePart& part) {
  const int self = w_.index();
  if (part.owner(part.first) != self || !part.shared()) return;
  PositionRange seen[kTileQueries];
  const AttentionTask task = attention_task(op, part.tile, seen);
  for (std::int32_t p = part.first; p < part.last; ++p)
    if (part.owner(p) != self)
      s_.kernels->attention_fold(task, p * kAttentionPartition,
                                 s_.attention_memory.partial(s_.attention, part.owner(p), p));
  if (part.last > part.tile.last_partition) s_.kernels->attention_finish(task);
}

void OpRunner::apply(const AttentionOp& op) {
  store_cache(op);
  Position end = 0;
  for (const StepSlice& slice : in_.slices) end = std::max(end, slice.first + slice.rows);
  for (std::int32_t first = 0; first * kAttentionPartition < end; first += kRoundPartitions) {
    w_.barrier();
    bool shared = false;
    each_part(op, in_.slices, first, w_.count(), [&](const TilePart& part) {
      attend(op, part);
      shared |= part.shared();
    });
    if (!shared) continue;
    w_.barrier();
    each_part(op, in_.slices, first, w_.count(), [&](const TilePart& part) { join(op, part); });
  }
}

}  // namespace strata
