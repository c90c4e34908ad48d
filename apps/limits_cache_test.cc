#include "limits_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "probe/machine.h"

namespace strata::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
          .isa = "avx2",
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

TEST_F(LimitsCache, IgnoresADamagedFileWithANote) {
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
      changed("\"avx2\"", "7"),
      changed("\"threads\":1", "\"threads\":2"),
      changed("\"threads\":1", "\"threads\":-1"),
      changed("\"threads\":2", "\"threads\":99999999999"),
      changed("\"threads\":2", "\"threads\":1"),
      changed("1.25E10", "0"),
      changed("1.25E10", "-1"),
      changed("1.25E10", "1e300"),
      changed("1.25E10", "null"),
      changed("\"by_threads\":[", "\"by_threads\":[3,"),
  };
  for (const std::string& text : bad) {
    SCOPED_TRACE(text.substr(0, 200));
    write_text(path, text);
    std::string note;
    EXPECT_FALSE(usable_limits(path, note).has_value());
    EXPECT_THAT(note, HasSubstr("run strata profile"));
  }
}

TEST_F(LimitsCache, IgnoresTheLimitsOfAnotherProcessorWithANote) {
  const std::string path = path_of("limits.json");
  MachineLimits limits = sample();
  ASSERT_TRUE(save_limits(limits, path).ok());
  std::string note;
  EXPECT_TRUE(usable_limits(path, note).has_value());
  EXPECT_FALSE(usable_limits(path_of("none.json"), note).has_value());
  EXPECT_THAT(note, IsEmpty());
  limits.cpu = "another\x1b[31m";
  ASSERT_TRUE(save_limits(limits, path).ok());
  EXPECT_FALSE(usable_limits(path, note).has_value());
  EXPECT_THAT(note, HasSubstr("another processor"));
  EXPECT_EQ(note.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace strata::apps
