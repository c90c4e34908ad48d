// Asks the system what this process may use.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "placement/hardware_profile.h"

namespace strata {

// Never fails: what cannot be read is taken as one core and as 1 GiB.
HardwareProfile probe_machine();

// The part of the available memory that is taken unasked; the rest is for others.
Bytes default_memory(const HardwareProfile& profile);

// The value in bytes of a /proc/meminfo line such as "MemAvailable:   123 kB".
std::optional<Bytes> meminfo_field(std::string_view text, std::string_view field);

// The value of a line of a control group's memory.stat such as "inactive_file 123".
std::optional<Bytes> memory_stat_field(std::string_view text, std::string_view field);

// What a line such as "model name : Some processor" of /proc/cpuinfo says, without outer spaces.
std::optional<std::string> cpuinfo_field(std::string_view text, std::string_view field);

// The processor as it names itself, or "unknown processor".
std::string cpu_name();

// All memory of the machine, or 0 where the system does not tell.
Bytes memory_total();

// The cores a control group's "quota period" allows, which may be 1.5; nullopt for "max 100000",
// and for "-1 100000", which says the same in version 1.
std::optional<double> cores_of_quota(std::string_view cpu_max);

// The largest resident set this process has had, or 0 where the system does not tell.
Bytes peak_resident_bytes();
// The resident set now, likewise.
Bytes resident_bytes();

}  // namespace strata
