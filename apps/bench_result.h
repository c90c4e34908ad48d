// What `strata bench` measures and what came of it.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench_work.h"
#include "probe/limits.h"

namespace strata::apps {

enum class TestKind : std::uint8_t {
  kPrompt,    // `tokens` of a prompt, until the last is computed
  kGenerate,  // `tokens` per sequence, after the first, behind `depth` tokens
};

struct BenchTest {
  TestKind kind = TestKind::kPrompt;
  std::int32_t tokens = 0;
  std::int32_t depth = 0;
  std::int32_t sequences = 1;  // that run together, each with a prompt of its own
  bool batched = false;        // a peer is asked through its program for batches

  std::string name() const;  // e.g. "pp512", "tg128 @ 8192", "tg128 @ 128 x 16"
  auto operator<=>(const BenchTest&) const = default;
};

// One repetition.
struct Sample {
  double seconds = 0;
  double tokens = 0;  // of all sequences
  Work work;

  double rate() const { return tokens / seconds; }
};

struct Spread {
  double median = 0;
  double lowest = 0;
  double highest = 0;
};
Spread spread_of(std::vector<double> values);  // REQUIRES: not empty

// What the machine does at most with at least as many threads.
struct BenchLimits {
  int threads = 0;            // with which they were measured
  double read_bandwidth = 0;  // bytes/s
  double int8_ops = 0;        // ops/s; 0 where the peak of the ISA in use was not measured
};
struct BenchRow {
  BenchTest test;
  std::vector<Sample> samples;
  std::vector<double> peer;         // tokens/s; empty where no peer was asked
  std::vector<BenchLimits> limits;  // measured in turn with the samples; empty where not asked

  std::vector<double> rates() const;
  double bytes_per_second() const;  // median
  double operations_per_second() const;
  std::optional<BenchLimits> own_limits() const;  // medians of `limits`
};

struct BenchMachine {
  std::string cpu;
  std::string isa;
  int cores = 0;
  int threads = 0;
  Bytes memory = 0;
};

// Of the fewest measured threads that are not fewer; nothing where all are.
std::optional<BenchLimits> limits_of(const MachineLimits& measured, const BenchMachine& machine);

// Of the limits, 1 being all; 0 where there is none to compare with.
struct Shares {
  double read = 0;
  double int8 = 0;
};
// By the row's own limits or else `limits`.
Shares shares_of(const BenchRow& row, const std::optional<BenchLimits>& limits);

struct BenchReport {
  std::string date;  // YYYY-MM-DD
  BenchMachine machine;
  std::optional<BenchLimits> limits;
  boost::json::object model;
  boost::json::object settings;
  Bytes file_bytes = 0;  // of the model
  std::vector<double> load_seconds;
  std::vector<double> cold_load_seconds;  // with nothing of the file in memory; may be empty
  std::vector<BenchRow> rows;
  Bytes peak_resident = 0;
};

// More digits of a measurement are noise.
double six_digits(double value);
// JSON with numbers as short as they read back, and a line for what fits there.
std::string readable_json(const boost::json::object& object);

// The same for people, for programs, and for spreadsheets, where a line is a test.
std::string bench_table(const BenchReport& report);
std::string bench_json(const BenchReport& report);
std::string bench_csv(const BenchReport& report);

}  // namespace strata::apps
