// Layers with a state: each worker takes some channels or heads through all rows, in order.
#include <algorithm>
#include <cmath>

#include "device/cpu/cpu_segment.h"

namespace strata {

float* OpRunner::state(const StateSlot& place, const StepSlice& slice, std::int64_t first,
                       std::int64_t last) const {
  const auto group = static_cast<std::size_t>(place.cache_group);
  const CacheView& cache = s_.spec.caches[group];
  const BlockId slot = slice.block_tables[group].front();
  const Bytes layer_bytes = state_layer_bytes(s_.spec.graph->cache_groups[group].spec);
  auto* layer =
      reinterpret_cast<float*>(cache.data + static_cast<Bytes>(slot.value) * cache.block_bytes +
                               static_cast<Bytes>(place.cache_layer) * layer_bytes);
  if (slice.first == 0) std::fill(layer + first, layer + last, 0.0f);
  return layer + first;
}

void OpRunner::apply(const ShortConvOp& op) {
  const Rows in = rows(op.in);
  const Rows out = rows(op.out);
  const std::int64_t past = op.kernel - 1;
  const float* weights = vector(op.weight);
  const float* bias = op.bias ? vector(*op.bias) : nullptr;
  const auto channels = w_.share(in.width, kLanes);
  for (const StepSlice& slice : in_.slices) {
    float* window = state(op.slot, slice, channels.first * past, channels.last * past);
    for (std::int64_t c = channels.first; c < channels.last; ++c, window += past) {
      const float* taps = weights + c * op.kernel;
      for (std::int64_t row = slice.first_row; row < slice.first_row + slice.rows; ++row) {
        const float x = in.row(row)[c];
        float sum = 0;
        for (std::int64_t t = 0; t < past; ++t) sum += taps[t] * window[t];
        sum += taps[past] * x;
        out.row(row)[c] = bias != nullptr ? sum + bias[c] : sum;
        std::copy(window + 1, window + past, window);
        window[past - 1] = x;
      }
    }
  }
}

void OpRunner::apply(const SsmScanOp& op) {
  const Rows x = rows(op.x), dt = rows(op.dt), b = rows(op.b), c = rows(op.c), out = rows(op.out);
  const float* a = vector(op.a);
  const float* d = vector(op.d);
  const bool per_head = weight(op.a).columns == op.heads;
  const std::int64_t n = op.state_size;
  const std::int64_t head_state = op.head_size * n;
  float* decay = scratch_.floats.data();
  const auto heads = w_.share(op.heads);
  for (const StepSlice& slice : in_.slices) {
    float* head = state(op.slot, slice, heads.first * head_state, heads.last * head_state);
    for (std::int64_t h = heads.first; h < heads.last; ++h, head += head_state) {
      const std::int64_t group = h / (op.heads / op.groups);
      for (std::int64_t row = slice.first_row; row < slice.first_row + slice.rows; ++row) {
        const float step = dt.row(row)[h];
        if (per_head) {
          s_.kernels->exp_scaled(step, a + h, 1, decay);
          std::fill(decay + 1, decay + n, decay[0]);
        } else {
          s_.kernels->exp_scaled(step, a + h * n, n, decay);
        }
        for (std::int64_t i = 0; i < op.head_size; ++i) {
          const float input = x.row(row)[h * op.head_size + i];
          const float sum = s_.kernels->state_step(
              head + i * n, decay, step * input, b.row(row) + group * n, c.row(row) + group * n, n);
          out.row(row)[h * op.head_size + i] = sum + d[h] * input;
        }
      }
    }
  }
}

void OpRunner::apply(const GatedDeltaOp& op) {
  const Rows query = rows(op.query), key = rows(op.key), value = rows(op.value);
  const Rows dt = rows(op.dt), beta = rows(op.beta), out = rows(op.out);
  const float* a = vector(op.a);
  const std::int64_t n = op.key_size;
  const std::int64_t head_state = op.value_size * n;
  float* decay = scratch_.floats.data();
  float* q = decay + n;
  float* k = q + n;
  const auto normalize = [&](const float* from, float scale, float* to) {
    const float factor = scale / std::sqrt(s_.kernels->dot(from, from, n) + op.epsilon);
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] * factor;
  };
  const float scale = 1.0f / std::sqrt(static_cast<float>(n));
  const auto heads = w_.share(op.value_heads);
  for (const StepSlice& slice : in_.slices) {
    float* head = state(op.slot, slice, heads.first * head_state, heads.last * head_state);
    for (std::int64_t h = heads.first; h < heads.last; ++h, head += head_state) {
      const std::int64_t key_head = h / (op.value_heads / op.key_heads);
      for (std::int64_t row = slice.first_row; row < slice.first_row + slice.rows; ++row) {
        normalize(query.row(row) + key_head * n, scale, q);
        normalize(key.row(row) + key_head * n, 1.0f, k);
        s_.kernels->exp_scaled(dt.row(row)[h], a + h, 1, decay);
        std::fill(decay + 1, decay + n, decay[0]);
        for (std::int64_t i = 0; i < op.value_size; ++i) {
          const std::int64_t at = h * op.value_size + i;
          const float seen = decay[0] * s_.kernels->dot(head + i * n, k, n);
          const float change = beta.row(row)[h] * (value.row(row)[at] - seen);
          out.row(row)[at] = s_.kernels->state_step(head + i * n, decay, change, k, q, n);
        }
      }
    }
  }
}

}  // namespace strata
