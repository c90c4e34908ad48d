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
  for (const auto& [text, what] : {std::pair{"a 1", "'a 1' is not of the form NAME = VALUE"},
                                   {"= 1", "NAME = VALUE"},
                                   {"a =", "a has no value"},
                                   {"a = # 1", "no value"},
                                   {"a = [1,,2]", "no value"},
                                   {"a = [1 2]", "without a comma"},
                                   {"a = [[1]]", "without quotes"},
                                   {"a = [\n1,\n", "does not close"},
                                   {"a = \"b", "quotes do not close"},
                                   {"a = [\"b\n\"]", "quotes do not close"},
                                   {"a = \"\\n\"", "has a \\ before"},
                                   {"a = b", "without quotes"},
                                   {"a = 1 2", "more than one value"},
                                   {"a = \"b\"c", "more than one value"},
                                   {"[serve]\na = 1", "[serve]: tables are not known"}}) {
    const auto settings = parse_settings("f", std::string("\n# x\n") + text);
    ASSERT_FALSE(settings.ok()) << text;
    EXPECT_THAT(settings.status().message(), HasSubstr("f, line 3: ")) << text;
    EXPECT_THAT(settings.status().message(), HasSubstr(what)) << text;
  }
}

}  // namespace
}  // namespace strata::apps
