// Fills a KernelTable from one vocabulary.
#pragma once

#include "device/cpu/kernels.h"
#include "device/cpu/kernels/activate.h"
#include "device/cpu/kernels/attention.h"
#include "device/cpu/kernels/matmul.h"
#include "device/cpu/kernels/recurrent.h"
#include "device/cpu/kernels/rows.h"
#include "formats/all.h"

namespace strata {

template <class V, class... F>
constexpr void add_matmuls(KernelTable& table, FormatList<F...>) {
  ((table.matmul[static_cast<int>(F::kId)] = matmul<V, F>), ...);
}

template <class V>
constexpr KernelTable make_kernel_table(const char* name) {
  KernelTable table{};
  table.name = name;
  add_matmuls<V>(table, AllFormats{});
  table.quantize_q8x32 = quantize_q8x32<V>;
  table.quantize_q8x256 = quantize_q8x256<V>;
  table.rms_norm = rms_norm<V>;
  table.layer_norm = layer_norm<V>;
  table.attention_f32 = attention<V, CacheF32<V>>;
  table.attention_f16 = attention<V, CacheF16<V>>;
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
  return table;
}

}  // namespace strata
