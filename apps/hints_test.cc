#include "hints.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::apps {
namespace {

using ::testing::HasSubstr;

using Words = std::vector<std::string>;

TEST(Hints, TheClosestWordTakesTheFewestEdits) {
  const Words known = {"bench", "embed", "ls", "run", "show"};
  EXPECT_EQ(closest("rnu", known), "run");
  EXPECT_EQ(closest("embded", known), "embed");
  EXPECT_EQ(closest("benhc", known), "bench");
  EXPECT_EQ(closest("shw", known), "show");
  EXPECT_EQ(closest("list", known), "ls");
  EXPECT_EQ(closest("", known), "ls");
  EXPECT_EQ(closest(std::string(1 << 20, 'x'), known), "bench");
}

class HintsOfAProgram : public ::testing::Test {
 protected:
  HintsOfAProgram() {
    app_.add_subcommand("run");
    app_.add_subcommand("bench")->add_option("-p");
  }
  CLI::App app_;
};

TEST_F(HintsOfAProgram, AnUnknownCommandIsNamedWithTheClosest) {
  EXPECT_THAT(unknown_command(app_, Words{"rum"}),
              HasSubstr("no command 'rum'; did you mean strata run?"));
  EXPECT_EQ(unknown_command(app_, Words{"a\x1b[31m"}).find('\x1b'), std::string::npos);
  for (const Words& fine : {Words{}, Words{"run"}, Words{"--help"}})
    EXPECT_EQ(unknown_command(app_, fine), "");
}

TEST_F(HintsOfAProgram, OptionsOfLlamaCppGetStratasWay) {
  EXPECT_THAT(hint_for(app_, Words{"run", "-m", "x.gguf"}), HasSubstr("strata run MODEL"));
  EXPECT_THAT(hint_for(app_, Words{"bench", "x.gguf", "-p", "1", "-ngl", "99"}),
              HasSubstr("-ngl is no option of strata bench"));
  EXPECT_EQ(hint_for(app_, Words{"bench", "x.gguf", "-p", "x"}), "");
  EXPECT_EQ(hint_for(app_, Words{"run", "x.gguf", "--unknown"}), "");
}

}  // namespace
}  // namespace strata::apps
