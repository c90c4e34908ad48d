// Fills a KernelTable from one vocabulary.
#pragma once

#include "device/cpu/kernels.h"
#include "device/cpu/kernels/activate.h"
#include "device/cpu/kernels/attention.h"
#include "device/cpu/kernels/matmul.h"
#include "device/cpu/kernels/peak.h"
#include "device/cpu/kernels/recurrent.h"
#include "device/cpu/kernels/rope.h"
#include "device/cpu/kernels/rows.h"
#include "formats/all.h"

namespace strata {

template <class V, class... F>
constexpr void add_matmuls(KernelTable& table, FormatList<F...>) {
  ((table.matmul[static_cast<int>(F::kId)] = matmul<V, F>), ...);
}

template <class V, class E>
constexpr CacheKernels cache_kernels() {
  return {attention_partial<V, E>, store_keys<E>, store_values<E>};
}

// Matrix products in vocabulary M, all else in V of eight lanes, whose order is pinned.
template <class V, class M = V>
constexpr KernelTable make_kernel_table(const char* name) {
  KernelTable table{};
  table.name = name;
  add_matmuls<M>(table, AllFormats{});
  table.quantize_q8x32 = quantize_q8x32<V>;
  table.quantize_q8x256 = quantize_q8x256<V>;
  table.rms_norm = rms_norm<V>;
  table.layer_norm = layer_norm<V>;
  table.cache[0] = cache_kernels<V, CacheF32<V>>();
  table.cache[1] = cache_kernels<V, CacheF16<V>>();
  table.cache[2] = cache_kernels<V, CacheQ8<V>>();
  table.attention_fold = attention_fold<V>;
  table.attention_finish = attention_finish<V>;
  table.rotate_adjacent = rotate_adjacent<V>;
  table.rotate_halves = rotate_halves<V>;
  table.gate_silu = gate_silu<V>;
  table.gate_gelu_tanh = gate_gelu_tanh<V>;
  table.gate_sigmoid = gate_sigmoid<V>;
  table.gate_clamped_swiglu = gate_clamped_swiglu<V>;
  table.multiply = multiply<V>;
  table.softcap = softcap<V>;
  table.silu = activate<V, silu<V>>;
  table.sigmoid = activate<V, sigmoid<V>>;
  table.tanh = activate<V, tanh<V>>;
  table.relu_squared = activate<V, relu_squared<V>>;
  table.softplus = activate<V, softplus<V>>;
  table.gelu = activate<V, gelu<V>>;
  table.scaled_add = scaled_add<V>;
  table.exp_scaled = exp_scaled<V>;
  table.dot = dot<V>;
  table.state_step = state_step<V>;
  table.peak_int8 = peak_int8<M>;
  table.peak_f32 = peak_f32<M>;
  table.read_words = read_words<M>;
  return table;
}

}  // namespace strata
