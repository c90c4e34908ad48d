#include "probe/machine.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(Machine, ReadsMeminfoFieldsByWholeName) {
  const std::string text = "MemTotal: 100 kB\nMemAvailableX: 1 kB\nMemAvailable:   64 kB\n";
  EXPECT_EQ(meminfo_field(text, "MemAvailable"), 64 * kKiB);
  EXPECT_EQ(meminfo_field(text, "SwapFree"), std::nullopt);
  EXPECT_EQ(meminfo_field("MemAvailable: many kB", "MemAvailable"), std::nullopt);
}

TEST(Machine, ReadsMemoryStatFieldsByWholeName) {
  const std::string text = "inactive_file_x 1\ninactive_file 4096\nanon 7";
  EXPECT_EQ(memory_stat_field(text, "inactive_file"), 4096u);
  EXPECT_EQ(memory_stat_field(text, "anon"), 7u);
  EXPECT_EQ(memory_stat_field(text, "file"), std::nullopt);
  EXPECT_EQ(memory_stat_field("anon many", "anon"), std::nullopt);
}

TEST(Machine, ReadsCpuinfoFieldsOfTheFirstProcessor) {
  const std::string text = "processor\t: 0\nmodel name\t: A: B  \n\nmodel name\t: C\nflags\n";
  EXPECT_EQ(cpuinfo_field(text, "model name"), "A: B");
  EXPECT_EQ(cpuinfo_field(text, "model"), std::nullopt);
  EXPECT_EQ(cpuinfo_field(text, "flags"), std::nullopt);
}

TEST(Machine, TurnsACpuQuotaIntoCores) {
  EXPECT_EQ(cores_of_quota("max 100000\n"), std::nullopt);
  EXPECT_EQ(cores_of_quota("-1\n 100000\n"), std::nullopt);
  EXPECT_EQ(cores_of_quota("400000\n 100000\n"), 4);
  EXPECT_EQ(cores_of_quota("150000 100000\n"), 1.5);
  EXPECT_EQ(cores_of_quota("50000 100000\n"), 0.5);
  EXPECT_GT(cores_of_quota("9223372036854775807 1\n"), 1e18);
  EXPECT_EQ(cores_of_quota("50000 0\n"), std::nullopt);
  EXPECT_EQ(cores_of_quota(""), std::nullopt);
}

TEST(Machine, FindsMemoryAndCores) {
  const HardwareProfile profile = probe_machine();
  EXPECT_GT(profile.memory_available, 0u);
  EXPECT_LT(default_memory(profile), profile.memory_available);
  EXPECT_GE(profile.physical_cores, 1);
  EXPECT_GT(profile.quota.value_or(1), 0);
  for (const std::vector<int>& node : profile.nodes) EXPECT_FALSE(node.empty());
  EXPECT_GT(resident_bytes(), 0u);
  EXPECT_LE(resident_bytes(), 2 * peak_resident_bytes());
  EXPECT_GE(memory_total(), profile.memory_available);
  EXPECT_FALSE(cpu_name().empty());
}

}  // namespace
}  // namespace strata
