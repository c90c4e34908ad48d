#include "child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::apps {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

Result<std::string> shell(const std::string& script, milliseconds limit = seconds(60)) {
  return run_child({"/bin/sh", "-c", script}, limit);
}

TEST(ChildProcess, GivesAllThatWasWrittenToStandardOutput) {
  const auto text = shell("echo loud >&2; yes line | head -c 200000");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(text->size(), 200000u);
  EXPECT_TRUE(text->starts_with("line\nline\n"));
}

TEST(ChildProcess, ReadsNothingOfOurInput) { EXPECT_EQ(*shell("cat"), ""); }

TEST(ChildProcess, SaysHowItFailedAndWhatItSaid) {
  EXPECT_THAT(shell("echo no such model >&2; exit 3").status().message(),
              HasSubstr("exit code 3; it said: no such model"));
  EXPECT_THAT(shell("kill -9 $$").status().message(), HasSubstr("signal 9"));
  EXPECT_THAT(run_child({"/nowhere/bench"}, seconds(60)).status().message(),
              HasSubstr("cannot start /nowhere/bench: No such file"));
}

TEST(ChildProcess, IsKilledWhenItTakesTooLongOrWritesTooMuch) {
  EXPECT_THAT(shell("exec sleep 1000", milliseconds(50)).status().message(),
              HasSubstr("took longer than 0.05 s"));
  EXPECT_THAT(shell("exec yes").status().message(), HasSubstr("wrote more than"));
  EXPECT_THAT(shell("exec >&-; exec sleep 1000", milliseconds(50)).status().message(),
              HasSubstr("took longer"));
}

TEST(ChildProcess, IsNotWaitedForBeyondItsEnd) {
  const auto text = shell("sleep 5 & echo done");
  ASSERT_TRUE(text.ok()) << text.status().message();
  EXPECT_EQ(*text, "done\n");
}

}  // namespace
}  // namespace strata::apps
