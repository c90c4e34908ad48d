#include "serve/body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace strata::serve {
namespace {

using ::testing::HasSubstr;

std::string body_trouble(std::string_view body) {
  const auto parsed = parse_body(body);
  EXPECT_FALSE(parsed.ok()) << body;
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.status().http_status, 400) << body;
  return parsed.status().message;
}

TEST(Body, IsAnObjectOrRefused) {
  EXPECT_TRUE(parse_body("{}").ok());
  for (const char* const body :
       {"", "{:", "[]", "5", "\"x\"", "true", "null", "{\"a\":1}x", "{\"a\":\"\xff\"}", "{'a':1}"})
    EXPECT_THAT(body_trouble(body), HasSubstr("JSON")) << body;
}

TEST(Body, IsTheValueThatTheLibraryReads) {
  const std::string long_text(10'000, 'x');
  const std::string body =
      R"( {"a": [1, -2, 18446744073709551615, 1.5e3, true, false, null, "\ud83d\ude0a\n", [], {}],
           "b": {"a": {"a": ")" +
      long_text + R"("}, ")" + long_text + "\": 1}} \n";
  const auto parsed = parse_body(body);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message;
  EXPECT_EQ(boost::json::value(*parsed), boost::json::parse(body));
}

TEST(Body, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(body_trouble(""), HasSubstr("it is empty"));
  EXPECT_THAT(body_trouble("\xef\xbb\xbf{}"), HasSubstr("byte order mark, at byte 0"));
  EXPECT_THAT(body_trouble("{\"a\": \"b\xff\"}"), HasSubstr("not UTF-8 at byte 8"));
  EXPECT_THAT(body_trouble("{\"a\": \"\xe0\x80\xaf\"}"), HasSubstr("not UTF-8 at byte 7"));
  EXPECT_THAT(body_trouble("{\"a\": \"\xc3"), HasSubstr("not UTF-8 at byte 7"));
  EXPECT_THAT(body_trouble("{\"a\": \"\\ud83d\"}"), HasSubstr("surrogate"));
  EXPECT_THAT(body_trouble("{\"a\": \"\\ude0a\"}"), HasSubstr("surrogate"));
  EXPECT_THAT(body_trouble("{\"a\": \"\\ud83d\\u0041\"}"), HasSubstr("surrogate"));
  EXPECT_THAT(body_trouble("{\"a\": \"b"), HasSubstr("ends at byte 8"));
  EXPECT_THAT(body_trouble("{\"a\": [1,"), HasSubstr("ends at byte 9"));
  EXPECT_THAT(body_trouble("{} x"), HasSubstr("at byte 3"));
  EXPECT_THAT(body_trouble("{\"a\": \"b\nc\"}"), HasSubstr("\\x0a cannot stand at byte 8"));
  EXPECT_THAT(body_trouble("{\"a\": 'b\xff'}"), HasSubstr("' cannot stand at byte 6"));
  EXPECT_THAT(body_trouble("{\"a\": 01}"), HasSubstr("1 cannot stand at byte 7"));
}

TEST(Body, HoldsALimitedNumberOfValues) {
  std::string full;
  for (int i = 0; i < (1 << 18) - 3; ++i) full += "[],";
  EXPECT_TRUE(parse_body("{\"a\":[" + full + "0]}").ok());
  EXPECT_THAT(body_trouble("{\"a\":[" + full + "0,1]}"), HasSubstr("more than 262144 values"));
}

TEST(Body, HasALimitedDepth) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "{\"a\":";
  EXPECT_THAT(body_trouble(deep), HasSubstr("deeper than 128 levels at byte 640"));
}

TEST(Body, HasNoNameTwice) {
  for (const auto& [body, field] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"a": 1, "b": 2, "a": 1})", "a"},
           {R"({"a": 1, "\u0061": 2})", "a"},
           {R"({"list": [{"a": 1}, [0, {"b": {"c": 1, "d": {}, "c": 2}}]]})", "list[1][1].b.c"},
           {R"({"\n": 1, "\n": 2)", "\\x0a"}}) {
    EXPECT_THAT(body_trouble(body), HasSubstr("twice")) << body;
    EXPECT_EQ(parse_body(body).status().field, field) << body;
  }
  EXPECT_TRUE(parse_body(R"({"a": {"a": 1}, "b": {"a": 1}, "c": [{"a": 1}, {"a": 1}]})").ok());
}

TEST(Body, ValuesAreCountedWithoutParsing) {
  const std::string lists = R"({"a": [[0], [0, 1], {"b": [2]}], "c": "[,{\"[,"})";
  EXPECT_TRUE(holds_more_values(lists, 8));
  EXPECT_FALSE(holds_more_values(lists, 12));
  EXPECT_FALSE(holds_more_values(R"({"text": ")" + std::string(1'000, ',') + R"("})", 10));
  EXPECT_FALSE(holds_more_values(R"(\)", 1)) << "whatever is no JSON";
  EXPECT_TRUE(holds_more_values(std::string(100, '['), 99));
}

}  // namespace
}  // namespace strata::serve
