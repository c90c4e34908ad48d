// The kernels that pass over one row of activations: what a layer costs beside its products.
#include <benchmark/benchmark.h>

#include <functional>
#include <vector>

#include "device/cpu/isa_select.h"

namespace strata {
namespace {

constexpr std::int64_t kElements = 4096;

struct Row {
  std::vector<float> x = std::vector<float>(kElements, 0.5f);
  std::vector<float> y = std::vector<float>(kElements, 0.25f);
  std::vector<float> out = std::vector<float>(kElements);
};
using Pass = std::function<void(const KernelTable& kernels, Row& row)>;

void measure(benchmark::State& state, const KernelTable& kernels, const Pass& pass) {
  Row row;
  for (auto step : state) {
    (void)step;
    pass(kernels, row);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}

using Gate = void (*KernelTable::*)(const float*, const float*, std::int64_t, float*);
Pass gate(Gate kernel) {
  return [kernel](const KernelTable& kernels, Row& row) {
    (kernels.*kernel)(row.x.data(), row.y.data(), kElements, row.out.data());
  };
}

// The row's values stay as they are: each pass starts from a copy.
Pass activate(ActivateKernel KernelTable::*kernel) {
  return [kernel](const KernelTable& kernels, Row& row) {
    row.out = row.x;
    (kernels.*kernel)(row.out.data(), row.y.data(), kElements);
  };
}

using Quantize = void (*KernelTable::*)(const float*, std::int64_t, void*);
Pass quantize(Quantize kernel) {
  return [kernel](const KernelTable& kernels, Row& row) {
    (kernels.*kernel)(row.x.data(), kElements, row.out.data());
  };
}

void rms_norm(const KernelTable& kernels, Row& row) {
  kernels.rms_norm(row.x.data(), row.y.data(), 1e-5f, kElements, row.out.data());
}

void layer_norm(const KernelTable& kernels, Row& row) {
  kernels.layer_norm(row.x.data(), row.y.data(), row.y.data(), 1e-5f, kElements, row.out.data());
}

bool register_all() {
  const std::pair<const char*, Pass> passes[] = {
      {"rms_norm", rms_norm},
      {"layer_norm", layer_norm},
      {"quantize_q8x32", quantize(&KernelTable::quantize_q8x32)},
      {"quantize_q8x256", quantize(&KernelTable::quantize_q8x256)},
      {"gate_silu", gate(&KernelTable::gate_silu)},
      {"gate_gelu_tanh", gate(&KernelTable::gate_gelu_tanh)},
      {"gate_sigmoid", gate(&KernelTable::gate_sigmoid)},
      {"gate_clamped_swiglu", gate(&KernelTable::gate_clamped_swiglu)},
      {"multiply", gate(&KernelTable::multiply)},
      {"silu", activate(&KernelTable::silu)},
      {"tanh", activate(&KernelTable::tanh)},
      {"gelu", activate(&KernelTable::gelu)},
  };
  for (const Isa isa : runnable_isas()) {
    const KernelTable& kernels = **select_kernels(isa);
    for (const auto& [name, pass] : passes)
      benchmark::RegisterBenchmark(
          fmt::format("rows/{}/{}", kernels.name, name).c_str(),
          [&kernels, run = pass](benchmark::State& state) { measure(state, kernels, run); });
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace strata
