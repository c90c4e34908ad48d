// Rotary embedding, cache writes and attention.
#include <algorithm>
#include <cstring>

#include "base/half.h"
#include "base/math.h"
#include "device/cpu/cache_layout.h"
#include "device/cpu/cpu_segment.h"

namespace strata {
namespace {

void store_element(std::uint8_t* p, CacheFormat format, float x) {
  if (format == CacheFormat::kF32) {
    std::memcpy(p, &x, 4);
    return;
  }
  const std::uint16_t h = f32_to_f16(x);
  std::memcpy(p, &h, 2);
}

void rotate(float* a, float* b, float cos, float sin) {
  const float x = *a, y = *b;
  *a = x * cos - y * sin;
  *b = x * sin + y * cos;
}

}  // namespace

void OpRunner::apply(const RopeTableOp& op) {
  const Rows out = rows(op.out);
  const std::vector<double>& frequencies = s_.rope_frequencies[op_index_];
  each_row(out.count, [&](std::int64_t i) {
    const double position = s_.positions[static_cast<std::size_t>(i)];
    float* cos = out.row(i);
    float* sin = cos + frequencies.size();
    for (std::size_t f = 0; f < frequencies.size(); ++f) {
      cos[f] = static_cast<float>(op.magnitude * cos_f64(position * frequencies[f]));
      sin[f] = static_cast<float>(op.magnitude * sin_f64(position * frequencies[f]));
    }
  });
}

void OpRunner::apply(const RopeOp& op) {
  const Rows table = rows(op.table);
  const Rows value = rows(op.value);
  const std::int32_t half = op.dimensions / 2;
  const std::int32_t head_size = value.width / op.heads;
  each_row(value.count, [&](std::int64_t i) {
    const float* cos = table.row(i);
    const float* sin = cos + half;
    for (std::int32_t h = 0; h < op.heads; ++h) {
      float* x = value.row(i) + h * head_size;
      if (op.style == RopeStyle::kHalves) {
        for (std::int32_t d = 0; d < half; ++d) rotate(x + d, x + half + d, cos[d], sin[d]);
      } else {
        for (std::int32_t d = 0; d < half; ++d) rotate(x + 2 * d, x + 2 * d + 1, cos[d], sin[d]);
      }
    }
  });
}

void OpRunner::store_cache(const AttentionOp& op, std::int64_t row) {
  const auto group = static_cast<std::size_t>(op.cache_group);
  const CacheView& cache = s_.spec.caches[group];
  const CacheLayout layout(s_.spec.graph->cache_groups[group].spec, s_.spec.cache_format);
  const StepSlice& slice =
      in_.slices[static_cast<std::size_t>(s_.slice_of[static_cast<std::size_t>(row)])];
  const Position position = s_.positions[static_cast<std::size_t>(row)];
  const BlockId id = slice.block_tables[group][static_cast<std::size_t>(position / kBlockTokens)];
  const Bytes token = static_cast<Bytes>(position % kBlockTokens);
  const auto padded = static_cast<Bytes>(padded_value_size(op.value_size));
  for (std::int32_t head = 0; head < op.kv_heads; ++head) {
    std::uint8_t* keys = cache.data + static_cast<Bytes>(id.value) * cache.block_bytes +
                         layout.head_offset(op.cache_layer, head);
    const float* key = rows(op.key).row(row) + head * op.head_size;
    for (Bytes d = 0; d < static_cast<Bytes>(op.head_size); ++d)
      store_element(keys + (d * kBlockTokens + token) * layout.element, s_.spec.cache_format,
                    key[d]);
    if (!op.value.valid()) continue;
    std::uint8_t* values = keys + layout.key_bytes + token * padded * layout.element;
    const float* value = rows(op.value).row(row) + head * op.value_size;
    for (Bytes d = 0; d < padded; ++d)
      store_element(values + d * layout.element, s_.spec.cache_format,
                    d < static_cast<Bytes>(op.value_size) ? value[d] : 0.0f);
  }
}

void OpRunner::attend(const AttentionOp& op, std::int64_t row, std::int32_t first,
                      std::int32_t last) {
  const auto group = static_cast<std::size_t>(op.cache_group);
  const CacheView& cache = s_.spec.caches[group];
  const CacheLayout layout(s_.spec.graph->cache_groups[group].spec, s_.spec.cache_format);
  const StepSlice& slice =
      in_.slices[static_cast<std::size_t>(s_.slice_of[static_cast<std::size_t>(row)])];
  const Position position = s_.positions[static_cast<std::size_t>(row)];
  const std::int32_t kv_head = first / (op.heads / op.kv_heads);
  AttentionTask task;
  task.query = rows(op.query).row(row) + first * op.head_size;
  task.query_heads = last - first;
  task.head_size = op.head_size;
  task.value_size = op.value_size;
  task.cache = cache.data + layout.head_offset(op.cache_layer, kv_head);
  task.table = slice.block_tables[group].data();
  task.block_bytes = cache.block_bytes;
  task.value_offset = layout.key_bytes;
  task.first = op.window > 0 && position >= op.window ? position - op.window + 1 : 0;
  task.last = op.causal ? position : slice.first + slice.rows - 1;
  task.scale = op.scale;
  task.softcap = op.softcap;
  task.scratch = scratch_.floats.data();
  task.out = rows(op.out).row(row) + first * op.value_size;
  if (op.sinks) task.sinks = vector(*op.sinks) + first;
  task.values_in_keys = !op.value.valid();
  if (s_.spec.cache_format == CacheFormat::kF32)
    s_.kernels->attention_f32(task);
  else
    s_.kernels->attention_f16(task);
}

void OpRunner::apply(const AttentionOp& op) {
  const std::int64_t count = s_.rows;
  each_row(count, [&](std::int64_t row) { store_cache(op, row); });
  w_.barrier();
  const std::int32_t shared = op.heads / op.kv_heads;
  const std::int32_t shares = ceil_div(shared, kUnitHeads);
  const std::int32_t units = op.kv_heads * shares;
  // Dealt out one by one: later rows see more positions.
  for (std::int64_t i = w_.index(); i < count * units; i += w_.count()) {
    const auto unit = static_cast<std::int32_t>(i % units);
    const std::int32_t group = unit / shares * shared;
    const std::int32_t first = group + unit % shares * kUnitHeads;
    attend(op, i / units, first, std::min(first + kUnitHeads, group + shared));
  }
}

}  // namespace strata
