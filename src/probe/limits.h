// What this machine does at most, as measured: memory read in order, and arithmetic without memory.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "device/cpu/kernels.h"

namespace strata {

struct ThreadLimits {
  int threads = 0;
  double read_bandwidth = 0;  // bytes/s
  double int8_ops = 0;        // ops/s, a multiply-add being two
  double f32_ops = 0;
};

struct MachineLimits {
  std::string cpu;                       // as cpu_name() gives it
  std::string isa;                       // of the peaks; a name that --isa takes
  std::string date;                      // of the measurement, YYYY-MM-DD
  std::vector<ThreadLimits> by_threads;  // threads ascending
};

// The team sizes worth measuring up to `most`: each about half again the one before.
std::vector<int> measured_threads(int most);

struct MeasureEffort {
  Bytes buffer_bytes = 0;                    // read per repetition; 0: several times the caches
  std::chrono::milliseconds least_time{20};  // of a repetition of arithmetic
  int repetitions = 5;                       // of which the median counts
};

// For each of these team sizes, which ascend. Takes most of a second for each, during which nothing
// else should run. Fails where there is too little memory to look past the caches.
// REQUIRES: threads are not empty.
Result<MachineLimits> measure_limits(const KernelTable& kernels, std::span<const int> threads,
                                     const MeasureEffort& effort = {});

}  // namespace strata
