// What meeting at a barrier and dividing a loop cost, alone and beside threads that take the cores.
#include <benchmark/benchmark.h>

#include <memory>

#include "base/thread_team.h"

namespace strata {
namespace {

constexpr int kRounds = 1000;  // of a run, so that starting the team does not count

// A thread that keeps one core busy, as another program would.
class Neighbour {
 public:
  Neighbour()
      : thread_([this] {
          while (!stop_.load(std::memory_order_relaxed)) {
          }
        }) {}
  ~Neighbour() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

void measure(benchmark::State& state, const std::function<void(Worker&)>& round) {
  ThreadTeam team(static_cast<int>(state.range(0)));
  const auto neighbour = state.range(1) > 0 ? std::make_unique<Neighbour>() : nullptr;
  for (auto _ : state) {
    team.run([&](Worker& w) {
      for (int i = 0; i < kRounds; ++i) round(w);
    });
  }
  state.counters["round"] = benchmark::Counter(
      kRounds, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void barrier(benchmark::State& state) {
  measure(state, [](Worker& w) { w.barrier(); });
}

// Rows of a matrix product, some 25 ns each; the last thread's processor may be the slower one.
void compute(const Worker& w, Worker::Range range, std::int64_t slowness) {
  const std::int64_t factor = w.index() == w.count() - 1 ? slowness : 1;
  for (std::int64_t i = 0; i < (range.last - range.first) * 100 * factor; ++i)
    benchmark::DoNotOptimize(i);
}

void shared(benchmark::State& state) {
  measure(state, [&](Worker& w) {
    compute(w, w.share(state.range(2), 8), state.range(3));
    w.barrier();
  });
}

void taken(benchmark::State& state) {
  measure(state, [&](Worker& w) {
    w.each_part(state.range(2), 8, [&](Worker::Range range) { compute(w, range, state.range(3)); });
    w.barrier();
  });
}

void loops(benchmark::internal::Benchmark* b) {
  b->ArgNames({"threads", "neighbours", "rows", "slowness"});
  for (const int rows : {0, 64, 1024, 16384}) b->Args({2, 0, rows, 1});
  b->Args({2, 0, 1024, 2})->Args({2, 1, 1024, 1})->Args({4, 0, 1024, 1})->Args({4, 1, 1024, 1});
  b->UseRealTime()->MinTime(0.3);
}

BENCHMARK(barrier)
    ->ArgNames({"threads", "neighbours"})
    ->ArgsProduct({{1, 2, 4, 8, 64}, {0, 1}})
    ->UseRealTime()
    ->MinTime(0.3);
BENCHMARK(shared)->Apply(loops);
BENCHMARK(taken)->Apply(loops);

}  // namespace
}  // namespace strata
