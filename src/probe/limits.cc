#include "probe/limits.h"

#include <fmt/chrono.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <span>

#include "base/thread_team.h"
#include "probe/machine.h"

namespace strata {
namespace {

using Clock = std::chrono::steady_clock;
using Words = std::span<std::uint32_t>;

constexpr Bytes kHugePage = 2 * kMiB;
constexpr Bytes kLeastBuffer = 512 * kMiB;
constexpr Bytes kCacheMultiple = 4;  // how much larger a buffer leaves little of it in the caches

struct Free {
  void operator()(std::uint32_t* words) const { std::free(words); }
};
using Buffer = std::unique_ptr<std::uint32_t, Free>;

// Seconds from when all workers are ready until all are done.
double seconds_of(ThreadTeam& team, const std::function<void(Worker&)>& work) {
  Clock::time_point start;
  team.run([&](Worker& worker) {
    worker.barrier();
    if (worker.index() == 0) start = Clock::now();
    work(worker);
  });
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Operations per second of the team.
double arithmetic_rate(ThreadTeam& team, std::int64_t (*kernel)(std::int64_t rounds),
                       const MeasureEffort& effort) {
  const double least = std::chrono::duration<double>(effort.least_time).count();
  std::int64_t rounds = 16;
  std::int64_t operations = 0;  // of one worker
  const auto run = [&](Worker& worker) {
    const std::int64_t done = kernel(rounds);
    if (worker.index() == 0) operations = done;
  };
  while (seconds_of(team, run) < least) rounds *= 2;
  std::vector<double> rates;
  for (int i = 0; i < effort.repetitions; ++i) {
    const double seconds = seconds_of(team, run);
    rates.push_back(static_cast<double>(operations) * team.size() / seconds);
  }
  return median(rates);
}

Words part_of(Words words, const Worker& worker) {
  const auto [first, last] = worker.share(std::ssize(words), kHugePage / sizeof(std::uint32_t));
  return words.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
}

// Bytes per second of the team, each worker reading its own part in order. REQUIRES: words of 1.
Result<double> read_rate(ThreadTeam& team, const KernelTable& kernels, Words words,
                         const MeasureEffort& effort) {
  std::vector<double> rates;
  for (int i = 0; i < effort.repetitions; ++i) {
    std::atomic<std::uint32_t> all{0};
    const double seconds = seconds_of(team, [&](Worker& worker) {
      const Words part = part_of(words, worker);
      all |= kernels.read_words(part.data(), static_cast<std::int64_t>(part.size_bytes()));
    });
    if (all != 1) return internal_error("memory did not keep what was written to it");
    rates.push_back(static_cast<double>(words.size_bytes()) / seconds);
  }
  return median(rates);
}

Result<Bytes> buffer_size(const MeasureEffort& effort) {
  if (effort.buffer_bytes > 0) return effort.buffer_bytes;
  const long cache = sysconf(_SC_LEVEL3_CACHE_SIZE);  // 0 or -1 where it is not known
  const Bytes wanted =
      std::max(kLeastBuffer, kCacheMultiple * static_cast<Bytes>(std::max(cache, 0L)));
  const Bytes available = probe_machine().memory_available;
  if (available < 2 * wanted)
    return resource_exhausted(
        "measuring the memory needs a buffer of {} MiB, and {} MiB are available", wanted / kMiB,
        available / kMiB);
  return wanted;
}

}  // namespace

std::vector<int> measured_threads(int most) {
  std::vector<int> counts;
  for (int count = 1; count < most; count += std::max(1, count / 2)) counts.push_back(count);
  counts.push_back(std::max(1, most));
  return counts;
}

Result<MachineLimits> measure_limits(const KernelTable& kernels, std::span<const int> threads,
                                     const MeasureEffort& effort) {
  STRATA_ASSIGN(Bytes bytes, buffer_size(effort));
  bytes = round_up(bytes, kHugePage);
  const bool fits = bytes <= memory_total();
  const Buffer buffer(fits ? static_cast<std::uint32_t*>(std::aligned_alloc(kHugePage, bytes))
                           : nullptr);
  if (buffer == nullptr)
    return resource_exhausted("there is no memory for a buffer of {} MiB", bytes / kMiB);
  (void)madvise(buffer.get(), bytes, MADV_HUGEPAGE);  // a wish; small pages do as well
  const Words words(buffer.get(), bytes / sizeof(std::uint32_t));

  MachineLimits limits;
  limits.cpu = cpu_name();
  limits.isa = kernels.name;
  limits.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)));
  {
    // Touched first by all threads, so that the memory of every node serves.
    ThreadTeam team(threads.back());
    team.run([&](Worker& worker) { std::ranges::fill(part_of(words, worker), 1u); });
  }
  for (const int count : threads) {
    ThreadTeam team(count);
    STRATA_ASSIGN(const double bandwidth, read_rate(team, kernels, words, effort));
    limits.by_threads.push_back({
        .threads = count,
        .read_bandwidth = bandwidth,
        .int8_ops = arithmetic_rate(team, kernels.peak_int8, effort),
        .f32_ops = arithmetic_rate(team, kernels.peak_f32, effort),
    });
  }
  return limits;
}

}  // namespace strata
