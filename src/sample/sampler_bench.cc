// What choosing a token costs beside the step that made its logits.
#include <benchmark/benchmark.h>

#include <cmath>
#include <vector>

#include "sample/sampler.h"

namespace strata {
namespace {

constexpr std::size_t kVocabulary = 262'144;

SamplingParams nothing_on() {
  SamplingParams params;
  params.temperature = 1;
  params.top_k = 0;
  params.top_p = 1;
  params.min_p = 0;
  return params;
}

// Normally distributed, as a stand-in for a model's; three near the top decide most draws.
std::vector<float> make_logits() {
  std::vector<float> logits(kVocabulary);
  for (std::uint32_t i = 0; i < kVocabulary; ++i) {
    float sum = 0;
    for (const std::uint32_t word : philox({i, 0, 0, 0}, {1, 2}))
      sum += static_cast<float>(word) * 0x1p-32f;
    logits[i] = (sum - 2) * 4;
  }
  for (std::size_t i = 0; i < 3; ++i) logits[i * 70'000] = 16 - static_cast<float>(i);
  return logits;
}

void measure(benchmark::State& state, const SamplingParams& params) {
  const std::vector<float> logits = make_logits();
  const std::vector<TokenId> history(4096, 7);
  Sampler sampler;
  SamplerState sampler_state;
  std::uint32_t position = 0;
  for (auto step : state) {
    (void)step;
    auto token = sampler.sample(logits, params, history, {1, 0, position++}, sampler_state, {});
    benchmark::DoNotOptimize(token);
  }
}

// With nothing on but what `turn_on` sets.
void measure_alone(benchmark::State& state, void (*turn_on)(SamplingParams&)) {
  SamplingParams params = nothing_on();
  turn_on(params);
  measure(state, params);
}

void Greedy(benchmark::State& state) {
  measure_alone(state, [](auto& params) { params.temperature = 0; });
}
void Default(benchmark::State& state) { measure(state, {}); }
void Unfiltered(benchmark::State& state) { measure(state, nothing_on()); }
void TopP(benchmark::State& state) {
  measure_alone(state, [](auto& params) { params.top_p = 0.95f; });
}
void TopPFlat(benchmark::State& state) {
  measure_alone(state, [](auto& params) {
    params.temperature = 3;
    params.top_p = 0.95f;
    params.order = {SamplingStage::kTemperature, SamplingStage::kTopP};
  });
}
void MinP(benchmark::State& state) {
  measure_alone(state, [](auto& params) { params.min_p = 0.05f; });
}
void TypicalP(benchmark::State& state) {
  measure_alone(state, [](auto& params) { params.typical_p = 0.9f; });
}
void TopNSigma(benchmark::State& state) {
  measure_alone(state, [](auto& params) { params.top_n_sigma = 1; });
}
void Dry(benchmark::State& state) {
  SamplingParams params;
  params.dry_multiplier = 0.8f;
  measure(state, params);
}
void Mirostat(benchmark::State& state) {
  measure_alone(state, [](auto& params) { params.mirostat = 2; });
}

BENCHMARK(Greedy)->Unit(benchmark::kMillisecond);
BENCHMARK(Default)->Unit(benchmark::kMillisecond);
BENCHMARK(Unfiltered)->Unit(benchmark::kMillisecond);
BENCHMARK(TopP)->Unit(benchmark::kMillisecond);
BENCHMARK(TopPFlat)->Unit(benchmark::kMillisecond);
BENCHMARK(MinP)->Unit(benchmark::kMillisecond);
BENCHMARK(TypicalP)->Unit(benchmark::kMillisecond);
BENCHMARK(TopNSigma)->Unit(benchmark::kMillisecond);
BENCHMARK(Dry)->Unit(benchmark::kMillisecond);
BENCHMARK(Mirostat)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace strata
