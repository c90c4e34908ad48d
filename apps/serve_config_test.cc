#include "serve_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata::apps {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> values_of(std::string_view text) {
  const auto settings = parse_settings("f", text);
  EXPECT_TRUE(settings.ok()) << settings.status().message();
  return settings.ok() && settings->size() == 1 ? settings->front().values
                                                : std::vector<std::string>{"(not one setting)"};
}

TEST(ServeConfig, ReadsListsOverLines) {
  for (const char* const text : {"m = [\"a\", 'b']", "m = [\n  \"a\",\n  \"b\"\n]\n",
                                 "m=[ # these\r\n\"a\", # one\r\n'b', # two ]\r\n] # end\r\n"})
    EXPECT_THAT(values_of(text), ElementsAre("a", "b")) << text;
  EXPECT_THAT(values_of("m = []"), IsEmpty());
}

TEST(ServeConfig, KeepsWhatStandsInQuotes) {
  EXPECT_THAT(values_of("m = \"a # b\" # c"), ElementsAre("a # b"));
  EXPECT_THAT(values_of("m = ['a, ] # b', \"c d\"]"), ElementsAre("a, ] # b", "c d"));
  EXPECT_THAT(values_of(R"(m = "a \"b\" \\")"), ElementsAre(R"(a "b" \)"));
  EXPECT_THAT(values_of(R"(m = 'C:\new')"), ElementsAre(R"(C:\new)"));
  EXPECT_THAT(values_of("m = ''"), ElementsAre(""));
}

TEST(ServeConfig, KnowsNamesWithUnderscoresAndTheirLines) {
  const auto settings = parse_settings("f", "a_b = 1_000\n# x\n\nc = [\n]\nd=true");
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  ASSERT_EQ(settings->size(), 3u);
  EXPECT_EQ((*settings)[0].name, "a-b");
  EXPECT_THAT((*settings)[0].values, ElementsAre("1000"));
  EXPECT_EQ((*settings)[1].line, 4);
  EXPECT_EQ((*settings)[2].line, 6);
}

TEST(ServeConfig, SaysWhatIsWrongAndWhere) {
  for (const auto& [text, what] : {std::pair{"a 1", "="},
                                   {"a =", "value"},
                                   {"a = [1 2]", "array"},
                                   {"a = [\n1,\n", "array"},
                                   {"a = \"b", "string"},
                                   {"a = b", "value"},
                                   {"a = 1\na = 2", "redefine"},
                                   {"a = [[1]]", "a must be a text, a number"},
                                   {"a = 2001-01-01", "a must be a text, a number"},
                                   {"a.b = 1", "tables such as 'a' are not known"},
                                   {"[[serve]]\na = 1", "tables such as 'serve' are not known"},
                                   {"[serve]\na = 1", "tables such as 'serve' are not known"}}) {
    const auto settings = parse_settings("f", std::string("\n# x\n") + text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_THAT(settings.status().message(), HasSubstr("f, line ")) << text;
    EXPECT_THAT(settings.status().message(), HasSubstr(what)) << text;
  }
}

TEST(ServeConfig, BoundsWhatNests) {
  const std::string deep = "a = " + std::string(100'000, '[');
  EXPECT_FALSE(parse_settings("f", deep).ok());
}

}  // namespace
}  // namespace strata::apps
