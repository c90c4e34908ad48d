#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "base/memory_ledger.h"
#include "bench_result.h"
#include "version.h"

namespace strata::apps {
namespace {

namespace json = boost::json;

constexpr std::size_t kLineBytes = 96;
constexpr double kGiga = 1e9;

json::array numbers(const std::vector<double>& values) {
  json::array out;
  for (const double value : values) out.emplace_back(six_digits(value));
  return out;
}

json::object spread_json(const std::vector<double>& values) {
  const Spread spread = spread_of(values);
  return {{"median", six_digits(spread.median)},
          {"lowest", six_digits(spread.lowest)},
          {"highest", six_digits(spread.highest)},
          {"values", numbers(values)}};
}

// Numbers as short as they read back, and on one line what fits there behind `used` columns.
std::string write_json(const json::value& value, std::size_t indent, std::size_t used) {
  if (const double* real = value.if_double())
    return std::isfinite(*real) ? fmt::format("{}", *real) : "null";
  const json::object* object = value.if_object();
  const json::array* array = value.if_array();
  if (object == nullptr && array == nullptr) return json::serialize(value);
  std::vector<std::string> parts;
  if (object != nullptr)
    for (const auto& [key, member] : *object) {
      const std::string name = json::serialize(json::string(key)) + ": ";
      parts.push_back(name + write_json(member, indent + 1, indent + 1 + name.size()));
    }
  else
    for (const json::value& element : *array)
      parts.push_back(write_json(element, indent + 1, indent + 1));
  const char open = object != nullptr ? '{' : '[';
  const char close = object != nullptr ? '}' : ']';
  std::string line = fmt::format("{}{}{}", open, fmt::join(parts, ", "), close);
  if (used + line.size() <= kLineBytes && line.find('\n') == std::string::npos) return line;
  const std::string space(indent + 1, ' ');
  return fmt::format("{}\n{}{}\n{}{}", open, space, fmt::join(parts, ",\n" + space),
                     std::string(indent, ' '), close);
}

json::object limits_json(const BenchLimits& limits) {
  return {{"threads", limits.threads},
          {"read_bandwidth", six_digits(limits.read_bandwidth)},
          {"int8_ops", six_digits(limits.int8_ops)}};
}

json::object row_json(const BenchRow& row) {
  const BenchTest& test = row.test;
  json::object out{{"test", test.name()},
                   {"kind", test.kind == TestKind::kPrompt ? "prompt" : "generation"},
                   {"tokens", test.tokens},
                   {"depth", test.depth},
                   {"sequences", test.sequences},
                   {"batched", test.batched},
                   {"tokens_per_second", spread_json(row.rates())},
                   {"bytes_per_second", six_digits(row.bytes_per_second())},
                   {"operations_per_second", six_digits(row.operations_per_second())}};
  if (const auto limits = row.own_limits()) out["limits"] = limits_json(*limits);
  if (row.peer.empty()) return out;
  out["peer_tokens_per_second"] = spread_json(row.peer);
  out["ratio"] = six_digits(spread_of(row.rates()).median / spread_of(row.peer).median);
  return out;
}

// Empty where there is no limit to compare with.
std::string percent(double share, int digits, const char* unit = "") {
  return share > 0 ? fmt::format("{:.{}f}{}", 100 * share, digits, unit) : "";
}

std::string columns(std::initializer_list<std::string> cells) {
  std::string line;
  bool first = true;
  for (const std::string& cell : cells) {
    line += first ? fmt::format("{:<18}", cell) : fmt::format(" {:>9}", cell);
    first = false;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string with_unit(double value) { return fmt::format("{:.{}f}", value, value < 100 ? 2 : 1); }

std::string row_line(const BenchRow& row, const Shares& shares) {
  const Spread ours = spread_of(row.rates());
  const double bytes = row.bytes_per_second();
  const double operations = row.operations_per_second();
  std::string peer;
  std::string ratio;
  if (!row.peer.empty()) {
    const double median = spread_of(row.peer).median;
    peer = with_unit(median);
    ratio = fmt::format("{:.3f}", ours.median / median);
  }
  return columns({row.test.name(), with_unit(ours.median), with_unit(ours.lowest),
                  with_unit(ours.highest), with_unit(bytes / kGiga), percent(shares.read, 0, " %"),
                  with_unit(operations / kGiga), percent(shares.int8, 0, " %"), peer, ratio});
}

std::string load_line(const char* name, const std::vector<double>& seconds, Bytes bytes) {
  if (seconds.empty()) return {};
  const Spread load = spread_of(seconds);
  return fmt::format("{:<18} {:>8.3f} s ({:.3f} to {:.3f}), {} GB/s\n", name, load.median,
                     load.lowest, load.highest,
                     with_unit(static_cast<double>(bytes) / load.median / kGiga));
}

}  // namespace

double six_digits(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

std::string readable_json(const json::object& object) { return write_json(object, 0, 0) + "\n"; }

std::string bench_table(const BenchReport& report) {
  const BenchMachine& machine = report.machine;
  const auto plural = [](int count) { return count == 1 ? "" : "s"; };
  std::string text = fmt::format("{}, {} core{}, {}, {} thread{}, {}\n", machine.cpu, machine.cores,
                                 plural(machine.cores), machine.isa, machine.threads,
                                 plural(machine.threads), human_bytes(machine.memory));
  text += columns({"test", "tokens/s", "lowest", "highest", "GB/s", "of limit", "GOP/s", "of limit",
                   "peer", "ratio"});
  for (const BenchRow& row : report.rows) text += row_line(row, shares_of(row, report.limits));
  text += load_line("load", report.load_seconds, report.file_bytes);
  text += load_line("load cold", report.cold_load_seconds, report.file_bytes);
  text += fmt::format("{:<18} {:>10}\n", "peak memory", human_bytes(report.peak_resident));
  return text;
}

std::string bench_json(const BenchReport& report) {
  const BenchMachine& machine = report.machine;
  json::object out{{"strata", json::object{{"version", json::string(program_version())},
                                           {"commit", json::string(program_commit())}}},
                   {"date", report.date},
                   {"machine", json::object{{"cpu", machine.cpu},
                                            {"isa", machine.isa},
                                            {"cores", machine.cores},
                                            {"threads", machine.threads},
                                            {"memory_bytes", machine.memory}}},
                   {"limits", nullptr},
                   {"model", report.model},
                   {"settings", report.settings}};
  if (report.limits) out["limits"] = limits_json(*report.limits);
  json::array rows;
  for (const BenchRow& row : report.rows) rows.push_back(row_json(row));
  out["rows"] = std::move(rows);
  if (!report.load_seconds.empty()) out["load_seconds"] = spread_json(report.load_seconds);
  if (!report.cold_load_seconds.empty())
    out["cold_load_seconds"] = spread_json(report.cold_load_seconds);
  out["peak_resident_bytes"] = report.peak_resident;
  return readable_json(out);
}

std::string bench_csv(const BenchReport& report) {
  std::string text =
      "test,kind,tokens,depth,sequences,median,lowest,highest,bytes_per_second,"
      "operations_per_second,peer_median,ratio,read_percent,int8_percent\n";
  for (const BenchRow& row : report.rows) {
    const Spread ours = spread_of(row.rates());
    text +=
        fmt::format("{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},", row.test.name(),
                    row.test.kind == TestKind::kPrompt ? "prompt" : "generation", row.test.tokens,
                    row.test.depth, row.test.sequences, ours.median, ours.lowest, ours.highest,
                    row.bytes_per_second(), row.operations_per_second());
    const double peer = row.peer.empty() ? 0 : spread_of(row.peer).median;
    const Shares shares = shares_of(row, report.limits);
    text += (peer > 0 ? fmt::format("{:.6g},{:.6g}", peer, ours.median / peer) : ",") +
            fmt::format(",{},{}\n", percent(shares.read, 2), percent(shares.int8, 2));
  }
  return text;
}

}  // namespace strata::apps
