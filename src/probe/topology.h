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

// The physical cores it may keep busy all the time, which a quota may make 1.5.
double usable_cores(const HardwareProfile& profile);
// "1.5 of 2 cores", or "2 cores" where no quota is less.
std::string describe_usable_cores(const HardwareProfile& profile);

// How many threads compute unless somebody says otherwise: one per usable core. A fraction of a
// core counts as one, as for Go, Java and .NET: the group stops its threads together when its time
// is used up, so that they wait for the next period rather than for each other, and with fewer the
// fraction would never be used.
int default_threads(const HardwareProfile& profile);
// Why so many, for people.
std::string explain_default_threads(const HardwareProfile& profile);
// With more than so many they only wait for each other: the hardware threads, or what the quota
// keeps busy.
int most_useful_threads(const HardwareProfile& profile);
// The hardware threads, at least 1.
int processors_of(const HardwareProfile& profile);

// The folders that hold the limits of `controller`, given /proc/self/cgroup: the process's group
// and those around it, in the hierarchies of version 1 and 2. Not all of them need exist.
std::vector<std::string> control_group_folders(std::string_view text, std::string_view controller);

}  // namespace strata
