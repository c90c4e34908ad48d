// What the system's texts say of processors, memory nodes and control groups. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/hardware_profile.h"

namespace strata {

// The numbers of a list such as "0-3,8", ascending; nullopt when it is malformed or names more than
// 65,536.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// By memory node, those of its processors that are in `usable`, which is ascending; nodes without
// any are left out. `cpu_lists` are the nodes' cpulist files.
std::vector<std::vector<int>> usable_nodes(std::span<const std::string> cpu_lists,
                                           std::span<const int> usable);

// The processors each of `threads` workers should keep to: all of one node. Nodes get workers by
// their number of processors, neighbours the same one. Empty where there are not two nodes.
std::vector<std::vector<int>> worker_processors(const std::vector<std::vector<int>>& nodes,
                                                int threads);

// How many threads compute unless somebody says otherwise: one per physical core, within the quota.
int default_threads(const HardwareProfile& profile);
// Why so many, for people.
std::string explain_default_threads(const HardwareProfile& profile);

// The folders that hold the limits of `controller`, given /proc/self/cgroup: the process's group
// and those around it, in the hierarchies of version 1 and 2. Not all of them need exist.
std::vector<std::string> control_group_folders(std::string_view text, std::string_view controller);

}  // namespace strata
