// What of a schema is held, and what is noted instead.
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "grammar/json_schema.h"
#include "grammar/test_support.h"

namespace strata {
namespace {

namespace json = boost::json;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Read {
  Grammar grammar;
  std::vector<std::string> notes;
};

Result<Read> read(std::string_view schema, bool strict) {
  GrammarBuilder builder;
  JsonText text(builder);
  SchemaWork work;
  SchemaNotes notes;
  const json::value parsed = json::parse({schema.data(), schema.size()});
  STRATA_ASSIGN(const auto id,
                add_json_schema(text, parsed, "the schema", work, strict ? nullptr : &notes));
  const auto root = builder.add_rule("root");
  builder.define(root, id);
  STRATA_ASSIGN(Grammar grammar, builder.compile(root));
  return Read{std::move(grammar), notes.all()};
}

void expect_held(std::string_view schema, const std::vector<std::string>& taken,
                 const std::vector<std::string>& refused) {
  for (const bool strict : {true, false}) {
    const auto made = read(schema, strict);
    ASSERT_TRUE(made.ok()) << schema << made.status().message();
    EXPECT_THAT(made->notes, IsEmpty()) << schema;
    for (const std::string& text : taken) EXPECT_TRUE(accepts(made->grammar, text)) << text;
    for (const std::string& text : refused) EXPECT_FALSE(accepts(made->grammar, text)) << text;
  }
}

// One keyword, at `place`, is left out, or refused where nothing may be.
void expect_noted(std::string_view schema, std::string_view place,
                  const std::vector<std::string>& taken,
                  const std::vector<std::string>& refused = {}) {
  const auto made = read(schema, false);
  ASSERT_TRUE(made.ok()) << schema << made.status().message();
  const std::string start = fmt::format("the schema, {}: ", place);
  EXPECT_THAT(made->notes, ElementsAre(HasSubstr(start + "answers are not held to this")))
      << schema;
  for (const std::string& text : taken) EXPECT_TRUE(accepts(made->grammar, text)) << text;
  for (const std::string& text : refused) EXPECT_FALSE(accepts(made->grammar, text)) << text;
  const auto strict = read(schema, true);
  EXPECT_EQ(strict.status().code(), StatusCode::kUnsupported) << schema;
  EXPECT_THAT(strict.status().message(), HasSubstr(start)) << schema;
}

TEST(SchemaNotes, NameWhatIsNotHeld) {
  expect_noted(R"({"type":"array","items":{"type":"string"},"uniqueItems":true,"maxItems":2})",
               "#/uniqueItems", {R"(["a","a"])"}, {R"(["a","b","c"])", "[1]"});
  expect_noted(R"({"properties":{"d":{"type":"string","maxLength":3,
                   "pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}}})",
               "#/properties/d/pattern", {R"({"d":"1.5"})", R"({"d":"x"})"}, {R"({"d":"1.55"})"});
  expect_noted(R"({"type":"string","format":"uri","minLength":1,"maxLength":2083})", "#/maxLength",
               {R"("https://a.b/")"}, {R"("a b")"});
  expect_noted(R"({"type":"string","pattern":"^[A-Z]{2,3}-\\d+$","maxLength":10})", "#/maxLength",
               {R"("AB-1")"}, {R"("ab-1")"});
  expect_noted(R"({"type":"integer","multipleOf":5,"minimum":1})", "#/multipleOf", {"3"},
               {"0", "0.5"});
  expect_noted(R"({"type":"number","multipleOf":0.5})", "#/multipleOf", {"0.3"});
  expect_noted(R"({"type":"string","format":"email","pattern":"^[a-z]+@x.org$"})", "#/format",
               {R"("a@x.org")"}, {R"("a@y.org")"});
  expect_noted(R"({"allOf":[{"pattern":"^a"},{"pattern":"b$"},{"type":"string"}]})", "#/pattern",
               {R"("a")"}, {R"("b")"});
  for (const char* const format :
       {"path", "binary", "uuid4", "ipvanyaddress", "ipv4network", "regex", "base64"})
    expect_noted(fmt::format(R"({{"type":"string","format":"{}","maxLength":3}})", format),
                 "#/format", {R"("abc")"}, {R"("abcd")"});
}

TEST(SchemaNotes, AreNotNeededForWhatIsHeld) {
  expect_held(R"({"enum":["a","bcd",1],"maxLength":2,"minimum":0})", {R"("a")", "1"}, {R"("bcd")"});
  expect_held(R"({"type":"integer","enum":[-1,5,9999999999],"format":"int32","minimum":0})", {"5"},
              {"-1", "9999999999"});
  expect_held(R"({"enum":["2024-01-01","x"],"format":"date"})", {R"("2024-01-01")"}, {R"("x")"});
  expect_held(R"({"enum":["ab","b"],"pattern":"^a"})", {R"("ab")"}, {R"("b")"});
  expect_held(R"({"type":"integer","multipleOf":1})", {"7"}, {"7.5"});
  expect_held(R"({"type":"number","multipleOf":1})", {"7"}, {"7.5"});
  expect_held(R"({"type":"integer","format":"int32"})", {"2147483647", "-2147483648"},
              {"2147483648", "-2147483649"});
  expect_held(R"({"type":"integer","minimum":-9223372036854775808,
                  "maximum":9223372036854775807})",
              {"9223372036854775807", "-9223372036854775808"},
              {"9223372036854775808", "-9223372036854775809"});
  expect_held(R"({"type":"integer","minimum":0,"maximum":18446744073709551615})",
              {"0", "9223372036854775807"}, {"-1"});
  expect_held(R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[1]"}, {"[1,2]"});
  expect_held(R"({"type":"object","patternProperties":{"^[a-z]+$":{"type":"integer"}}})",
              {"{}", R"({"ab":1,"c":2})"}, {R"({"A":1})", R"({"a":"x"})"});
  expect_held(R"({"allOf":[{"format":"date"},{"type":"string","format":"date"}]})",
              {R"("2024-01-01")"}, {R"("x")"});
}

TEST(SchemaNotes, KeywordsThatAreNullAreNotThere) {
  expect_held(R"({"type":"integer","minimum":null,"maximum":3,"format":null,"multipleOf":null,
                  "enum":null,"anyOf":null,"not":null,"$ref":null})",
              {"-5", "3"}, {"4"});
  expect_held(R"({"properties":{"a":{"type":"null"}},"required":null,"minLength":null})",
              {"{}", R"({"a":null})"}, {R"("x")"});
  expect_held(R"({"allOf":[{"type":"integer","minimum":null},{"minimum":3,"maximum":null}]})",
              {"3"}, {"2"});
  expect_held(R"({"const":null})", {"null"}, {"1"});
}

TEST(SchemaNotes, AreOfLimitedNumber) {
  json::object properties;
  for (int i = 0; i < 500; ++i)
    properties[std::to_string(i)] = json::object{{"type", "string"}, {"format", "path"}};
  const auto made = read(json::serialize(json::object{{"properties", properties}}), false);
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->notes.size(), SchemaNotes::kMost + 1);
  EXPECT_THAT(made->notes.back(), HasSubstr("436 more keywords"));
}

}  // namespace
}  // namespace strata
