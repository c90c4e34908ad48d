// The matrix product of every format, by ISA and by rows that share a weight, on one thread and
// against the bare loop of such products. The weights lie in the caches: what memory adds is for
// whole models to show.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <vector>

#include "device/cpu/isa_select.h"
#include "formats/registry.h"

namespace strata {
namespace {

constexpr std::int64_t kColumns = 4096;
constexpr std::int64_t kWeightRows = 512;
constexpr std::int64_t kActivationRows[] = {1, 4, 8, 32, 128};

std::vector<float> some_values(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (float& value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(static_cast<std::int32_t>(state)) * 0x1p-36f;
  }
  return values;
}

// One group of rows, over and over.
std::vector<std::uint8_t> interleaved_weights(const FormatOps& format) {
  const std::int64_t bytes = kLanes * row_bytes(format.info, kColumns);
  const std::vector<float> values = some_values(kLanes * kColumns);
  std::vector<std::uint8_t> plain(static_cast<std::size_t>(bytes));
  format.encode_row(values.data(), kLanes * kColumns, plain.data());
  std::vector<std::uint8_t> weights(plain.size() * (kWeightRows / kLanes));
  for (auto at = weights.begin(); at != weights.end(); at += bytes)
    repack_rows(format, plain.data(), kLanes, bytes / kLanes, &*at);
  return weights;
}

// One row of activations in the form that the format asks for, none larger than f32.
std::vector<float> activation_row(const KernelTable& kernels, ActivationKind kind) {
  std::vector<float> values = some_values(kColumns);
  std::vector<float> row(values.size());
  switch (kind) {
    case ActivationKind::kF32: return values;
    case ActivationKind::kQ8x32: kernels.quantize_q8x32(values.data(), kColumns, row.data()); break;
    case ActivationKind::kQ8x256: kernels.quantize_q8x256(values.data(), kColumns, row.data());
  }
  return row;
}

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Operations per second: the best of some runs of several milliseconds.
double peak_rate(PeakKernel peak) {
  double best = 0;
  for (std::int64_t rounds = 16, good_runs = 0; good_runs < 8;) {
    const auto start = Clock::now();
    const auto operations = static_cast<double>(peak(rounds));
    const double seconds = seconds_since(start);
    if (seconds < 5e-3) {
      rounds *= 2;
      continue;
    }
    ++good_runs;
    best = std::max(best, operations / seconds);
  }
  return best;
}

void multiply(benchmark::State& state, const KernelTable& kernels, const FormatOps& format,
              double peak) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const std::vector<std::uint8_t> weights = interleaved_weights(format);
  const std::vector<std::vector<float>> rows(count, activation_row(kernels, format.activation));
  std::vector<std::vector<float>> results(count, std::vector<float>(kWeightRows));
  std::vector<const void*> activations;
  std::vector<float*> out;
  activations.reserve(count);
  out.reserve(count);
  for (const auto& row : rows) activations.push_back(row.data());
  for (auto& result : results) out.push_back(result.data());
  const MatMulKernel kernel = kernels.matmul[static_cast<std::size_t>(format.info.id)];
  const auto start = Clock::now();
  for (auto step : state) {
    (void)step;
    kernel({weights.data(), kColumns, kWeightRows, 0, kWeightRows, activations.data(), out.data(),
            state.range(0)});
    benchmark::ClobberMemory();
  }
  const double runs_per_second = static_cast<double>(state.iterations()) / seconds_since(start);
  const double operations =
      2.0 * kColumns * kWeightRows * static_cast<double>(count) * runs_per_second;
  state.counters["GOP/s"] = operations * 1e-9;
  state.counters["weight_GB/s"] = static_cast<double>(weights.size()) * runs_per_second * 1e-9;
  state.counters["peak_%"] = 100 * operations / peak;
}

bool register_all() {
  for (const Isa isa : runnable_isas()) {
    const KernelTable& kernels = **select_kernels(isa);
    std::map<PeakKernel, double> peaks;
    for (std::uint32_t id = 0; id < kMaxFormats; ++id) {
      const FormatOps* format = find_format(static_cast<FormatId>(id));
      if (format == nullptr) continue;
      const PeakKernel kernel = kernels.matmul_peak[id];
      if (!peaks.contains(kernel)) peaks[kernel] = peak_rate(kernel);
      const double peak = peaks[kernel];
      auto* registered = benchmark::RegisterBenchmark(
          fmt::format("matmul/{}/{}", kernels.name, format->info.name).c_str(),
          [&kernels, format, peak](benchmark::State& state) {
            multiply(state, kernels, *format, peak);
          });
      for (const std::int64_t rows : kActivationRows) registered->Arg(rows);
      registered->ArgName("rows")->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}

[[maybe_unused]] const bool kRegistered = register_all();

}  // namespace
}  // namespace strata
