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
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (line.starts_with(field) && line.size() > field.size() && line[field.size()] == ':') {
      const auto kilobytes = leading_number<Bytes>(line.substr(field.size() + 1));
      return kilobytes ? std::optional(*kilobytes * kKiB) : std::nullopt;
    }
    at = end + 1;
  }
  return std::nullopt;
}

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
