#include "limits_cache.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "base/printable.h"
#include "device/cpu/isa_select.h"
#include "hub/json.h"
#include "model_stores.h"
#include "probe/machine.h"
#include "probe/topology.h"
#include "say.h"

namespace strata::apps {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

constexpr std::int64_t kVersion = 1;
constexpr Bytes kLargestFile = kMiB;
constexpr std::size_t kLongestName = 200;
constexpr int kMostThreads = 65536;
constexpr double kLowestRate = 1e8;  // per second, of bytes and operations
constexpr double kHighestRate = 1e16;

Result<std::string> name_of(const json::object& object, std::string_view key) {
  std::string name = text_of(object, key);
  if (name.empty() || name.size() > kLongestName) return corrupt("`{}` is missing or absurd", key);
  return name;
}

Result<double> rate_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr || !value->is_number()) return corrupt("`{}` is no number", key);
  const auto rate = value->to_number<double>();
  if (!(rate >= kLowestRate && rate <= kHighestRate))
    return corrupt("`{}` is {:g}, which no machine has", key, rate);
  return rate;
}

Result<ThreadLimits> limits_of_threads(const json::value& value, int before) {
  const json::object* object = value.if_object();
  if (object == nullptr) return corrupt("`by_threads` holds something else than objects");
  const auto threads = natural_of(*object, "threads");
  if (!threads || *threads <= static_cast<Bytes>(before) || *threads > kMostThreads)
    return corrupt("`threads` are not in ascending order");
  ThreadLimits limits{.threads = static_cast<int>(*threads)};
  STRATA_ASSIGN(limits.read_bandwidth, rate_of(*object, "read_bandwidth"));
  STRATA_ASSIGN(limits.int8_ops, rate_of(*object, "int8_ops"));
  STRATA_ASSIGN(limits.f32_ops, rate_of(*object, "f32_ops"));
  return limits;
}

}  // namespace

Result<MachineLimits> parse_limits(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse({text.data(), text.size()}, error);
  const json::object* object = error ? nullptr : value.if_object();
  if (object == nullptr) return corrupt("it is no JSON object");
  if (natural_of(*object, "version") != kVersion) return corrupt("it is of another version");
  MachineLimits limits;
  STRATA_ASSIGN(limits.cpu, name_of(*object, "cpu"));
  STRATA_ASSIGN(limits.isa, name_of(*object, "isa"));
  STRATA_ASSIGN(limits.date, name_of(*object, "date"));
  const json::array* by_threads = array_of(*object, "by_threads");
  if (by_threads == nullptr || by_threads->empty())
    return corrupt("`by_threads` is missing or empty");
  for (const json::value& entry : *by_threads) {
    const int before = limits.by_threads.empty() ? 0 : limits.by_threads.back().threads;
    STRATA_ASSIGN(const ThreadLimits of, limits_of_threads(entry, before));
    limits.by_threads.push_back(of);
  }
  return limits;
}

json::object to_json(const MachineLimits& limits) {
  json::array by_threads;
  for (const ThreadLimits& of : limits.by_threads)
    by_threads.push_back({{"threads", of.threads},
                          {"read_bandwidth", of.read_bandwidth},
                          {"int8_ops", of.int8_ops},
                          {"f32_ops", of.f32_ops}});
  return {{"version", kVersion},
          {"cpu", replace_invalid_utf8(limits.cpu)},
          {"isa", limits.isa},
          {"date", limits.date},
          {"by_threads", std::move(by_threads)}};
}

Result<MachineLimits> load_limits(const std::string& path) {
  STRATA_ASSIGN(const File file, File::open(path));
  if (file.size() > kLargestFile) return corrupt("{}: it is too large", printable(path));
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  STRATA_TRY(file.read_exactly(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  auto limits = parse_limits(text);
  if (!limits.ok()) return limits.status().with_context(printable(path));
  return limits;
}

Status save_limits(const MachineLimits& limits, const std::string& path) {
  const std::string text = json::serialize(to_json(limits)) + "\n";
  const std::string partial = path + ".partial";
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);  // if not, creating the file says so
  const auto write = [&]() -> Status {
    fs::remove(partial, error);  // a link would be written through
    STRATA_ASSIGN(File file, File::create_new(partial));
    STRATA_TRY(file.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    STRATA_TRY(file.close());
    fs::rename(partial, path, error);
    if (error) return io_error("{}: cannot be put in place: {}", printable(path), error.message());
    return {};
  };
  Status status = write();
  if (!status.ok()) std::remove(partial.c_str());
  return status;
}

Result<std::string> limits_path(const MeasuredMachine& machine) {
  STRATA_ASSIGN(const std::string models, own_folder(user_stores()));
  std::string name = fmt::format("limits {} {}.json", machine.cores, machine.kernels->name);
  std::ranges::replace(name, ' ', '-');
  return (fs::path(models).parent_path() / name).string();
}

Result<MeasuredMachine> this_machine() {
  STRATA_ASSIGN(const KernelTable* kernels, select_kernels(Isa::kBest));
  const HardwareProfile profile = probe_machine();
  return MeasuredMachine{cpu_name(), kernels, describe_usable_cores(profile),
                         default_threads(profile), explain_default_threads(profile)};
}

Result<MachineLimits> measure(const MeasuredMachine& machine) {
  say("Measuring with up to {} thread{} ({}); nothing else should run meanwhile.\n",
      machine.threads, machine.threads == 1 ? "" : "s", machine.why_threads);
  return measure_limits(*machine.kernels, measured_threads(machine.threads));
}

Result<MachineLimits> usable_limits(const std::string& path, const MeasuredMachine& machine) {
  STRATA_ASSIGN(MachineLimits limits, load_limits(path));
  const int threads = limits.by_threads.back().threads;
  if (limits.cpu != machine.cpu)
    return invalid_argument("{}: measured on another processor, {}", printable(path),
                            printable(limits.cpu));
  if (limits.isa != machine.kernels->name)
    return invalid_argument("{}: measured with {} kernels, where {} are the best here",
                            printable(path), printable(limits.isa), machine.kernels->name);
  if (threads != machine.threads)
    return invalid_argument("{}: measured with up to {} thread{}, where it would be {} here ({})",
                            printable(path), threads, threads == 1 ? "" : "s", machine.threads,
                            machine.why_threads);
  return limits;
}

Result<std::optional<MachineLimits>> current_limits() {
  STRATA_ASSIGN(const MeasuredMachine machine, this_machine());
  STRATA_ASSIGN(const std::string path, limits_path(machine));
  auto kept = usable_limits(path, machine);
  if (kept.ok()) return std::optional(std::move(*kept));
  if (kept.status().code() == StatusCode::kNotFound) return std::optional<MachineLimits>();
  return make_error(kept.status().code(), "{} (strata profile measures anew)",
                    kept.status().message());
}

}  // namespace strata::apps
