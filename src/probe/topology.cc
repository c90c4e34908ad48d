#include "probe/topology.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/status.h"

namespace strata {
namespace {

constexpr int kMostThreads = 1024;
constexpr std::size_t kMostProcessors = 65'536;
constexpr int kLargestNumber = 1 << 20;

// Cuts off and returns what stands before `separator`, or everything.
std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || value < 0 || value > kLargestNumber) return std::nullopt;
  return value;
}

bool lists(std::string_view names, std::string_view name) {
  while (!names.empty())
    if (take_until(names, ',') == name) return true;
  return false;
}

}  // namespace

std::optional<std::vector<int>> parse_cpu_list(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  std::vector<int> processors;
  while (!text.empty()) {
    std::string_view range = take_until(text, ',');
    const bool several = range.find('-') != std::string_view::npos;
    const auto first = whole_number(take_until(range, '-'));
    const auto last = several ? whole_number(range) : first;
    const int above = processors.empty() ? 0 : processors.back() + 1;
    if (!first || !last || *first < above || *last < *first) return std::nullopt;
    if (processors.size() + static_cast<std::size_t>(*last - *first) >= kMostProcessors)
      return std::nullopt;
    for (int cpu = *first; cpu <= *last; ++cpu) processors.push_back(cpu);
  }
  return processors;
}

std::vector<std::vector<int>> usable_nodes(std::span<const std::string> cpu_lists,
                                           std::span<const int> usable) {
  std::vector<std::vector<int>> nodes;
  for (const std::string& list : cpu_lists) {
    const auto processors = parse_cpu_list(list);
    if (!processors) continue;
    std::vector<int> both;
    std::ranges::set_intersection(*processors, usable, std::back_inserter(both));
    if (!both.empty()) nodes.push_back(std::move(both));
  }
  return nodes;
}

std::vector<std::vector<int>> worker_processors(const std::vector<std::vector<int>>& nodes,
                                                int threads) {
  if (nodes.size() < 2) return {};
  std::size_t total = 0;
  for (const std::vector<int>& node : nodes) total += node.size();
  std::vector<std::vector<int>> workers;
  std::size_t node = 0, end = nodes[0].size();  // of the processors counted through all nodes
  for (int i = 0; i < threads; ++i) {
    const std::size_t at = total * static_cast<std::size_t>(i) / static_cast<std::size_t>(threads);
    while (at >= end) end += nodes[++node].size();
    workers.push_back(nodes[node]);
  }
  return workers;
}

double usable_cores(const HardwareProfile& profile) {
  const double cores = std::max(profile.physical_cores, 1);
  return std::min(cores, profile.quota.value_or(cores));
}

std::string describe_usable_cores(const HardwareProfile& profile) {
  const double usable = usable_cores(profile);
  const std::string all =
      fmt::format("{} core{}", profile.physical_cores, profile.physical_cores == 1 ? "" : "s");
  return usable < profile.physical_cores ? fmt::format("{:g} of {}", usable, all) : all;
}

int default_threads(const HardwareProfile& profile) {
  return static_cast<int>(std::ceil(std::min<double>(usable_cores(profile), kMostThreads)));
}

int processors_of(const HardwareProfile& profile) {
  std::size_t processors = 0;
  for (const std::vector<int>& node : profile.nodes) processors += node.size();
  return std::max({static_cast<int>(processors), profile.physical_cores, 1});
}

int most_useful_threads(const HardwareProfile& profile) {
  const int processors = processors_of(profile);
  return static_cast<int>(
      std::ceil(std::min<double>(processors, profile.quota.value_or(processors))));
}

std::string explain_default_threads(const HardwareProfile& profile) {
  std::string text = "one thread per physical core";
  if (usable_cores(profile) > kMostThreads)
    text = fmt::format("the most, of {} cores", profile.physical_cores);
  else if (usable_cores(profile) < profile.physical_cores)
    text = "the control group allows " + describe_usable_cores(profile);
  if (profile.nodes.size() > 1) text += fmt::format(", on {} memory nodes", profile.nodes.size());
  return text;
}

std::vector<std::string> control_group_folders(std::string_view text, std::string_view controller) {
  const std::string root = "/sys/fs/cgroup";
  std::vector<std::string> folders;
  const auto add = [&](const std::string& hierarchy, std::string_view group) {
    while (true) {
      folders.push_back(hierarchy + std::string(group));
      const std::size_t slash = group.rfind('/');
      if (slash == std::string_view::npos) return;
      group = group.substr(0, slash);
    }
  };
  while (!text.empty()) {
    std::string_view group = take_until(text, '\n');
    const std::string_view number = take_until(group, ':');
    const std::string_view controllers = take_until(group, ':');
    if (number == "0" && controllers.empty()) {
      add(root, group);
      add(root + "/unified", group);
    } else if (lists(controllers, controller)) {
      add(root + "/" + std::string(controller), group);
    }
  }
  return folders;
}

}  // namespace strata
