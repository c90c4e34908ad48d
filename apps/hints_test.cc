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
}

TEST(Hints, NoWordIsClosestWhereAllAreFar) {
  const Words known = {"bench", "ls", "run"};
  for (const auto& word : {std::string(), std::string("x"), std::string("xy"), std::string("serve"),
                           std::string("bencxyz"), std::string(1 << 20, 'x')})
    EXPECT_EQ(closest(word, known), "") << word.substr(0, 80);
  EXPECT_EQ(closest("x", {}), "");
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
  EXPECT_THAT(unknown_command(app_, Words{"serve"}),
              HasSubstr("no command 'serve'; strata --help lists all"));
  EXPECT_THAT(unknown_command(app_, Words{"chat"}),
              HasSubstr("strata run MODEL without a prompt is a chat"));
  EXPECT_EQ(unknown_command(app_, Words{"a\x1b[31m"}).find('\x1b'), std::string::npos);
  for (const Words& fine : {Words{}, Words{"run"}, Words{"--help"}})
    EXPECT_EQ(unknown_command(app_, fine), "");
}

TEST_F(HintsOfAProgram, OptionsOfLlamaCppGetStratasWay) {
  const auto hint = [&](const Words& words) { return hint_for(app_, words, false); };
  EXPECT_THAT(hint({"run", "-m", "x.gguf"}), HasSubstr("strata run MODEL"));
  EXPECT_THAT(hint({"bench", "x.gguf", "-p", "1", "-ngl", "99"}),
              HasSubstr("-ngl is no option of strata bench"));
  EXPECT_THAT(hint({"bench", "-m", "x.gguf"}), HasSubstr("strata bench MODEL"));
  EXPECT_THAT(hint({"bench", "x.gguf", "-fa", "1"}), HasSubstr("one way to compute attention"));
  EXPECT_THAT(hint({"bench", "x.gguf", "-pg", "16,4"}), HasSubstr("-p 16, and -n 4 -d 16"));
  EXPECT_THAT(hint({"bench", "x.gguf", "-t", "1,2"}), HasSubstr("strata bench once for each"));
  EXPECT_THAT(hint({"-m", "x.gguf"}), HasSubstr("-m is no option of strata; the model is"));
  EXPECT_EQ(hint({"bench", "x.gguf", "-p", "x"}), "");
  EXPECT_EQ(hint({"run", "x.gguf", "--unknown"}), "");
  EXPECT_EQ(hint({}), "");
}

TEST_F(HintsOfAProgram, WhereHelpIsGivenOnlyWhatLooksLikeItCounts) {
  EXPECT_THAT(hint_for(app_, Words{"run", "-hf", "a/b"}, true), HasSubstr("strata pull hf:"));
  EXPECT_EQ(hint_for(app_, Words{"run", "-m", "x.gguf", "-h"}, true), "");
}

}  // namespace
}  // namespace strata::apps
