// RWKV layers: each worker takes some channels or heads through all rows, in order.
#include <algorithm>
#include <cmath>

#include "device/cpu/cpu_segment.h"

namespace strata {
namespace {

constexpr float kSmallestNorm = 1e-12f;
constexpr float kDecayScale = -0.60653066f;  // -e^-0.5

}  // namespace

void OpRunner::apply(const TokenShiftOp& op) {
  const Rows in = rows(op.in);
  const auto channels = w_.share(in.width, kLanes);
  const float* weights = vector(op.weight);
  for (const StepSlice& slice : in_.slices) {
    float* const previous = state(op.slot, slice, channels.first, channels.last) - channels.first;
    for (std::int64_t row = slice.first_row; row < slice.first_row + slice.rows; ++row) {
      const float* x = in.row(row);
      for (std::size_t i = 0; i < op.outs.size(); ++i) {
        float* out = rows(op.outs[i]).row(row);
        const float* weight = weights + static_cast<std::int64_t>(i) * in.width;
        for (std::int64_t c = channels.first; c < channels.last; ++c)
          out[c] = x[c] + (previous[c] - x[c]) * weight[c];
      }
      std::copy(x + channels.first, x + channels.last, previous + channels.first);
    }
  }
}

void OpRunner::apply(const Rwkv7Op& op) {
  const Rows receptance = rows(op.receptance), decays = rows(op.decay), keys = rows(op.key);
  const Rows values = rows(op.value), rates = rows(op.rate);
  const Rows out = rows(op.out), bonus = rows(op.bonus);
  const KernelTable& kernels = *s_.kernels;
  const std::int64_t n = out.width / op.heads;
  // Of one row: what the state forgets, and what it takes up.
  float* decay = scratch_.floats.data();
  float *removed = decay + n, *k = removed + n, *returned = k + n, *change = returned + n;
  const auto heads = w_.share(op.heads);
  for (const StepSlice& slice : in_.slices) {
    float* head = state(op.slot, slice, heads.first * n * n, heads.last * n * n);
    for (std::int64_t at = heads.first * n; at < heads.last * n; at += n, head += n * n) {
      const float* removal = vector(op.removal) + at;
      const float* replacement = vector(op.replacement) + at;
      const float* bonus_weight = vector(op.bonus_weight) + at;
      for (std::int64_t row = slice.first_row; row < slice.first_row + slice.rows; ++row) {
        const float *r = receptance.row(row) + at, *key = keys.row(row) + at;
        const float *value = values.row(row) + at, *rate = rates.row(row) + at;
        kernels.exp_scaled(kDecayScale, decays.row(row) + at, n, decay);
        kernels.multiply(key, removal, n, removed);
        const float norm = std::max(std::sqrt(kernels.dot(removed, removed, n)), kSmallestNorm);
        for (std::int64_t i = 0; i < n; ++i) {
          removed[i] /= norm;
          returned[i] = removed[i] * rate[i];
          k[i] = key[i] * (1.0f + (rate[i] - 1.0f) * replacement[i]);
        }
        for (std::int64_t v = 0; v < n; ++v) {
          const float seen = kernels.dot(head + v * n, removed, n);
          for (std::int64_t i = 0; i < n; ++i) change[i] = value[v] * k[i] - seen * returned[i];
          out.row(row)[at + v] = kernels.state_step(head + v * n, decay, 1.0f, change, r, n);
        }
        kernels.multiply(k, bonus_weight, n, k);
        const float weight = kernels.dot(r, k, n);
        for (std::int64_t v = 0; v < n; ++v) bonus.row(row)[at + v] = weight * value[v];
      }
    }
  }
}

}  // namespace strata
