#include "limits_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "device/cpu/isa_select.h"
#include "probe/machine.h"

namespace strata::apps {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;

namespace fs = std::filesystem;

class LimitsCache : public ::testing::Test {
 protected:
  ~LimitsCache() override { fs::remove_all(folder_); }
  std::string path_of(const char* name) const { return (folder_ / name).string(); }

 private:
  const fs::path folder_ = fs::path(::testing::TempDir()) / fmt::format("limits_{}", ::getpid());
};

MachineLimits sample() {
  return {.cpu = cpu_name(),
          .isa = "scalar",
          .date = "a day",
          .by_threads = {{1, 1.25e10, 3.5e11, 1e11}, {2, 2e10, 7e11, 2e11}}};
}

void write_text(const std::string& path, std::string_view text) { std::ofstream(path) << text; }

TEST_F(LimitsCache, GivesBackWhatWasSaved) {
  const std::string path = path_of("new/limits.json");
  EXPECT_EQ(load_limits(path).status().code(), StatusCode::kNotFound);
  const MachineLimits saved = sample();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(save_limits(saved, path).ok());
  const auto loaded = load_limits(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ(loaded->cpu, saved.cpu);
  EXPECT_EQ(loaded->isa, saved.isa);
  EXPECT_EQ(loaded->date, saved.date);
  ASSERT_EQ(loaded->by_threads.size(), 2u);
  EXPECT_EQ(loaded->by_threads[1].threads, 2);
  EXPECT_EQ(loaded->by_threads[1].read_bandwidth, 2e10);
  EXPECT_EQ(loaded->by_threads[1].int8_ops, 7e11);
  EXPECT_EQ(loaded->by_threads[1].f32_ops, 2e11);
}

TEST_F(LimitsCache, RefusesADamagedFileWithItsReason) {
  const std::string path = path_of("limits.json");
  ASSERT_TRUE(save_limits(sample(), path).ok());  // makes the folder
  const std::string good = boost::json::serialize(to_json(sample()));
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string bad[] = {
      "",
      "[]",
      "{}",
      std::string(100, '['),
      std::string(2 * kMiB, ' '),
      good.substr(0, good.size() / 2),
      changed("\"version\":1", "\"version\":2"),
      changed("\"version\":1", "\"version\":\"1\""),
      changed("\"cpu\":\"", "\"cpu\":\"" + std::string(300, 'x')),
      changed("\"scalar\"", "7"),
      changed("\"threads\":1", "\"threads\":2"),
      changed("\"threads\":1", "\"threads\":-1"),
      changed("\"threads\":2", "\"threads\":99999999999"),
      changed("\"threads\":2", "\"threads\":1"),
      changed("1.25E10", "0"),
      changed("1.25E10", "-1"),
      changed("1.25E10", "1e300"),
      changed("1.25E10", "1e17"),
      changed("1.25E10", "1e-3"),
      changed("1.25E10", "1000001"),
      changed("1.25E10", "NaN"),
      changed("1.25E10", "null"),
      changed("\"by_threads\":[", "\"by_threads\":[3,"),
  };
  for (const std::string& text : bad) {
    SCOPED_TRACE(text.substr(0, 200));
    write_text(path, text);
    EXPECT_EQ(load_limits(path).status().code(), StatusCode::kCorrupt);
    EXPECT_THAT(load_limits(path).status().message(), HasSubstr(path));
  }
}

TEST_F(LimitsCache, RefusesTheLimitsOfAnotherMachine) {
  const std::string path = path_of("limits.json");
  const MachineLimits limits = sample();
  const MeasuredMachine machine{limits.cpu, select_kernels(Isa::kScalar).value(), "2 cores", 2,
                                "so many cores"};
  const auto refusal = [&](const MachineLimits& other) {
    EXPECT_TRUE(save_limits(other, path).ok());
    return usable_limits(path, machine).status().message();
  };
  EXPECT_EQ(refusal(limits), "");
  EXPECT_EQ(usable_limits(path_of("none.json"), machine).status().code(), StatusCode::kNotFound);
  MachineLimits other = limits;
  other.cpu = "another\x1b[31m";
  EXPECT_THAT(refusal(other), HasSubstr("another processor"));
  EXPECT_EQ(refusal(other).find('\x1b'), std::string::npos);
  other = limits;
  other.isa = "avx2";
  EXPECT_THAT(refusal(other), HasSubstr("with avx2 kernels, where scalar are"));
  other = limits;
  other.by_threads.pop_back();
  EXPECT_THAT(refusal(other),
              HasSubstr("up to 1 thread, where it would be 2 here (so many cores)"));
}

TEST(LimitsPath, IsAnotherForAnotherShareOfTheMachine) {
  MeasuredMachine machine{"cpu", select_kernels(Isa::kScalar).value(), "2 cores", 2, ""};
  EXPECT_THAT(limits_path(machine).value(), EndsWith("/limits-2-cores-scalar.json"));
  machine.cores = "1.5 of 2 cores";
  EXPECT_THAT(limits_path(machine).value(), EndsWith("/limits-1.5-of-2-cores-scalar.json"));
}

}  // namespace
}  // namespace strata::apps
