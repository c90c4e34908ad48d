#include "probe/machine.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "base/status.h"

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

// The control group folders of this process, innermost first (version 2), or the root.
std::vector<std::string> control_groups() {
  std::string group;
  std::stringstream lines(read_text("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("0::")) group = line.substr(3);
  std::vector<std::string> folders;
  while (true) {
    folders.push_back("/sys/fs/cgroup" + group);
    const auto slash = group.rfind('/');
    if (slash == std::string::npos) return folders;
    group.resize(slash);
  }
}

Bytes available_memory() {
  Bytes available =
      meminfo_field(read_text("/proc/meminfo"), "MemAvailable").value_or(kUnknownMemory);
  for (const std::string& folder : control_groups()) {
    const auto limit = leading_number<Bytes>(read_text(folder + "/memory.max"));
    if (!limit) continue;
    const Bytes used = leading_number<Bytes>(read_text(folder + "/memory.current")).value_or(0);
    available = std::min(available, *limit > used ? *limit - used : 0);
  }
  return available;
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  // Hardware threads of one core name the same siblings.
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    const std::string siblings =
        read_text(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  int count = std::max<int>(1, static_cast<int>(cores.size()));
  for (const std::string& folder : control_groups())
    if (const auto quota = cores_of_quota(read_text(folder + "/cpu.max")))
      count = std::min(count, *quota);
  return count;
}

}  // namespace

std::optional<Bytes> meminfo_field(std::string_view text, std::string_view field) {
  const auto value = field_of(text, field);
  const auto kilobytes = value ? leading_number<Bytes>(*value) : std::nullopt;
  return kilobytes ? std::optional(*kilobytes * kKiB) : std::nullopt;
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

std::optional<int> cores_of_quota(std::string_view cpu_max) {
  const auto quota = leading_number<std::int64_t>(cpu_max);
  const auto space = cpu_max.find(' ');
  if (!quota || space == std::string_view::npos) return std::nullopt;
  const auto period = leading_number<std::int64_t>(cpu_max.substr(space));
  if (!period || *period <= 0 || *quota <= 0) return std::nullopt;
  return static_cast<int>(std::clamp<std::int64_t>(*quota / *period, 1, 1 << 20));
}

HardwareProfile probe_machine() { return {available_memory(), usable_cores()}; }

Bytes peak_resident_bytes() {
  return meminfo_field(read_text("/proc/self/status"), "VmHWM").value_or(0);
}

}  // namespace strata
