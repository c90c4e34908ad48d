#include "probe/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/status.h"
#include "probe/topology.h"

namespace strata {
namespace {

constexpr Bytes kUnknownMemory = kGiB;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// What stands behind the colon of the first line "field : value".
std::optional<std::string_view> field_of(std::string_view text, std::string_view field) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == field)
      return trimmed(line.substr(colon + 1));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return std::nullopt;
}

template <typename T>
std::optional<T> leading_number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

// What follows `word` in the line that starts with that whole word.
std::optional<std::string_view> rest_of_line(std::string_view text, std::string_view word) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(word) && line.find_first_of(": ") == word.size())
      return line.substr(word.size());
    at = end + 1;
  }
  return std::nullopt;
}

// The files in which a version of control groups keeps its figures.
struct MemoryFiles {
  const char* limit;
  const char* used;
  const char* cached;  // the line of memory.stat with cached file pages that are given back unasked
};
constexpr MemoryFiles kMemoryFiles[] = {
    {"/memory.max", "/memory.current", "inactive_file"},
    {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"}};

// What is left of the smallest limit of a control group around this process.
Bytes available_memory(const std::string& groups) {
  Bytes available =
      meminfo_field(read_text("/proc/meminfo"), "MemAvailable").value_or(kUnknownMemory);
  for (const std::string& folder : control_group_folders(groups, "memory")) {
    for (const MemoryFiles& files : kMemoryFiles) {
      const auto limit = leading_number<Bytes>(read_text(folder + files.limit));
      if (!limit) continue;
      const Bytes used = leading_number<Bytes>(read_text(folder + files.used)).value_or(0);
      const Bytes cached =
          memory_stat_field(read_text(folder + "/memory.stat"), files.cached).value_or(0);
      const Bytes held = used - std::min(used, cached);
      available = std::min(available, *limit - std::min(*limit, held));
    }
  }
  return available;
}

std::optional<double> quota(const std::string& groups) {
  std::optional<double> least;
  for (const std::string& folder : control_group_folders(groups, "cpu")) {
    for (const std::string& text :
         {read_text(folder + "/cpu.max"), read_text(folder + "/cpu.cfs_quota_us") + ' ' +
                                              read_text(folder + "/cpu.cfs_period_us")}) {
      const auto cores = cores_of_quota(text);
      if (cores) least = std::min(*cores, least.value_or(*cores));
    }
  }
  return least;
}

// The hardware threads this process may use; control groups' sets of processors show here too.
std::vector<int> usable_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> threads;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) threads.push_back(cpu);
  return threads;
}

int count_cores(const std::vector<int>& threads) {
  // Hardware threads of one core name the same siblings.
  std::set<std::string> cores;
  for (const int cpu : threads) {
    const std::string siblings =
        read_text(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return static_cast<int>(cores.size());
}

std::vector<std::string> node_cpu_lists() {
  std::vector<std::string> lists;
  const std::string folder = "/sys/devices/system/node/";
  for (const int node : parse_cpu_list(read_text(folder + "online")).value_or(std::vector<int>()))
    lists.push_back(read_text(fmt::format("{}node{}/cpulist", folder, node)));
  return lists;
}

}  // namespace

std::optional<Bytes> meminfo_field(std::string_view text, std::string_view field) {
  const auto value = field_of(text, field);
  const auto kilobytes = value ? leading_number<Bytes>(*value) : std::nullopt;
  return kilobytes ? std::optional(*kilobytes * kKiB) : std::nullopt;
}

std::optional<Bytes> memory_stat_field(std::string_view text, std::string_view field) {
  const auto rest = rest_of_line(text, field);
  return rest ? leading_number<Bytes>(*rest) : std::nullopt;
}

std::optional<std::string> cpuinfo_field(std::string_view text, std::string_view field) {
  const auto value = field_of(text, field);
  return value ? std::optional<std::string>(*value) : std::nullopt;
}

std::string cpu_name() {
  const auto name = cpuinfo_field(read_text("/proc/cpuinfo"), "model name");
  return name && !name->empty() ? *name : "unknown processor";
}

Bytes memory_total() { return meminfo_field(read_text("/proc/meminfo"), "MemTotal").value_or(0); }

std::optional<double> cores_of_quota(std::string_view cpu_max) {
  const auto quota = leading_number<std::int64_t>(cpu_max);
  const auto space = cpu_max.find(' ');
  if (!quota || space == std::string_view::npos) return std::nullopt;
  const auto period = leading_number<std::int64_t>(cpu_max.substr(space));
  if (!period || *period <= 0 || *quota <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

HardwareProfile probe_machine() {
  const std::string groups = read_text("/proc/self/cgroup");
  const std::vector<int> threads = usable_threads();
  return {available_memory(groups), count_cores(threads), quota(groups),
          usable_nodes(node_cpu_lists(), threads)};
}

Bytes default_memory(const HardwareProfile& profile) {
  constexpr double kShare = 0.9;
  return static_cast<Bytes>(kShare * static_cast<double>(profile.memory_available));
}

Bytes resident_bytes() {
  return meminfo_field(read_text("/proc/self/status"), "VmRSS").value_or(0);
}

Bytes peak_resident_bytes() {
  return meminfo_field(read_text("/proc/self/status"), "VmHWM").value_or(0);
}

}  // namespace strata
