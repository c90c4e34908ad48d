#include "bench_result.h"

#include <algorithm>

namespace strata::apps {

std::string BenchTest::name() const {
  std::string name = fmt::format("{}{}", kind == TestKind::kPrompt ? "pp" : "tg", tokens);
  if (depth > 0) name += fmt::format(" @ {}", depth);
  if (batched) name += fmt::format(" x {}", sequences);
  return name;
}

Spread spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  const double median =
      values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

std::optional<BenchLimits> limits_of(const MachineLimits& measured, const BenchMachine& machine) {
  const auto enough = std::ranges::find_if(
      measured.by_threads, [&](const ThreadLimits& of) { return of.threads >= machine.threads; });
  if (enough == measured.by_threads.end()) return std::nullopt;
  return BenchLimits{enough->threads, enough->read_bandwidth,
                     measured.isa == machine.isa ? enough->int8_ops : 0};
}

std::vector<double> BenchRow::rates() const {
  std::vector<double> rates;
  for (const Sample& sample : samples) rates.push_back(sample.rate());
  return rates;
}

double BenchRow::bytes_per_second() const {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.work.bytes / sample.seconds);
  return spread_of(std::move(values)).median;
}

std::optional<BenchLimits> BenchRow::own_limits() const {
  if (limits.empty()) return std::nullopt;
  const auto median = [&](double BenchLimits::*of) {
    std::vector<double> values;
    for (const BenchLimits& each : limits) values.push_back(each.*of);
    return spread_of(std::move(values)).median;
  };
  return BenchLimits{limits.front().threads, median(&BenchLimits::read_bandwidth),
                     median(&BenchLimits::int8_ops)};
}

Shares shares_of(const BenchRow& row, const std::optional<BenchLimits>& limits) {
  const BenchLimits of = row.own_limits().value_or(limits.value_or(BenchLimits()));
  const auto share = [](double value, double limit) { return limit > 0 ? value / limit : 0; };
  return {share(row.bytes_per_second(), of.read_bandwidth),
          share(row.operations_per_second(), of.int8_ops)};
}

double BenchRow::operations_per_second() const {
  std::vector<double> values;
  for (const Sample& sample : samples) values.push_back(sample.work.operations / sample.seconds);
  return spread_of(std::move(values)).median;
}

}  // namespace strata::apps
