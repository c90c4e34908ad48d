// What schemas may cost, by the sizes of what is made of them and the steps that are counted.
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "base/utf8.h"
#include "grammar/json_schema.h"
#include "grammar/test_support.h"

namespace strata {
namespace {

namespace json = boost::json;
using namespace testing;

struct Cost {
  Status status;
  std::size_t parts = 0, steps = 0;
};

Cost cost_of(const json::value& schema) {
  GrammarBuilder builder;
  JsonText text(builder);
  SchemaWork work;
  const Status status = add_json_schema(text, schema, "the schema", work).status();
  return {status, builder.size(), work.spent()};
}

json::string spelled(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) append_utf8(c, out);
  return json::string(out);
}

// Apart from each other.
std::u32string apart(char32_t first, std::size_t count) {
  std::u32string out;
  for (std::size_t i = 0; i < count; ++i) out += first + static_cast<char32_t>(2 * i);
  return out;
}

json::array names(std::string_view prefix, int count) {
  json::array out;
  for (int i = 0; i < count; ++i) out.push_back(json::string(fmt::format("{}{}", prefix, i)));
  return out;
}

// Twenty levels, each of which is the next in two ways.
json::object doubling() {
  json::object definitions;
  for (int i = 0; i < 20; ++i) {
    const json::object next{{"$ref", fmt::format("#/$defs/a{}", i + 1)}, {"minLength", 0}};
    definitions[fmt::format("a{}", i)] = json::object{{"anyOf", json::array{next, next}}};
  }
  definitions["a20"] = json::object{{"type", "string"}};
  return {{"$ref", "#/$defs/a0"}, {"minLength", 0}, {"$defs", definitions}};
}

TEST(SchemaCost, AFailedBuilderKeepsNothing) {
  GrammarBuilder builder;
  EXPECT_TRUE(builder.status().ok());
  builder.literal(std::string(GrammarLimits::kExpressions + 1, 'x'));
  ASSERT_FALSE(builder.status().ok());
  const std::size_t size = builder.size();
  EXPECT_LT(size, 10u);
  const CharClass many = CharClass({{'a', 'b'}, {'d', 'e'}});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(builder.literal("x"), builder.empty());
    EXPECT_EQ(builder.characters(many), builder.empty());
    builder.add_rule("x");
  }
  EXPECT_EQ(builder.size(), size);
}

TEST(SchemaCost, EveryPartCounts) {
  GrammarBuilder builder;
  std::size_t size = builder.size();
  const auto grown = [&] { return builder.size() - std::exchange(size, builder.size()); };
  builder.literal("abcd");
  EXPECT_GE(grown(), 4u);
  std::vector<CharRange> ranges;
  for (const char32_t c : apart(U'一', 100)) ranges.push_back({c, c});
  builder.characters(CharClass(ranges));
  EXPECT_GE(grown(), 100u);
  builder.add_rule(std::string(6400, 'n'));
  EXPECT_GE(grown(), 100u);
}

TEST(SchemaCost, LongNamesAreRefusedBeforeMuchIsMadeOfThem) {
  const json::object named{{std::string(3'000'000, 'a'), json::object()}};
  const std::string name(3'000'000, 'a');
  for (const json::object& schema :
       {json::object{{"properties", named}, {"additionalProperties", true}},
        json::object{{"const", name}}, json::object{{"required", json::array{name}}}}) {
    const Cost cost = cost_of(schema);
    EXPECT_EQ(cost.status.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(cost.status.message(), ::testing::HasSubstr("the schema, #"));
    EXPECT_LT(cost.parts, 3000u);
  }
  // A tree of so many characters has no place among the rules.
  const json::object long_one{{std::string(200'000, 'a'), json::object()}};
  EXPECT_FALSE(
      json_schema_grammar(json::object{{"properties", long_one}, {"additionalProperties", true}})
          .ok());
}

TEST(SchemaCost, APatternIsReadOnceWhereverItStands) {
  const auto cost = [](int count) {
    json::object properties;
    for (int i = 0; i < count; ++i)
      properties[std::to_string(i)] = json::object{{"$ref", "#/$defs/s"}, {"minLength", 0}};
    return cost_of(json::object{
        {"properties", properties},
        {"$defs", json::object{{"s", json::object{{"type", "string"},
                                                  {"pattern", std::string(9000, 'a')}}}}}});
  };
  const Cost one = cost(1), some = cost(100);
  ASSERT_TRUE(one.status.ok() && some.status.ok()) << some.status.message();
  EXPECT_GT(one.parts, 9000u);
  EXPECT_LT(some.parts, 2 * one.parts);
  json::object properties;
  for (int i = 0; i < 100; ++i)
    properties[std::to_string(i)] =
        json::object{{"pattern", std::to_string(i) + std::string(9000, 'a')}};
  EXPECT_EQ(cost_of(json::object{{"properties", properties}}).status.code(),
            StatusCode::kResourceExhausted);
}

TEST(SchemaCost, LongListsTakeNoLongerThanTheyAre) {
  const auto start = std::chrono::steady_clock::now();
  const std::string characters(spelled(apart(U'一', 9990)));
  json::object properties;
  for (int i = 0; i < 6; ++i)
    properties[std::to_string(i)] =
        json::object{{"pattern", fmt::format("^[{}{}]$", i, characters)}};
  EXPECT_TRUE(cost_of(json::object{{"properties", properties}}).status.ok());
  const json::object a{{"enum", names("a", 50'000)}}, b{{"enum", names("b", 50'000)}};
  EXPECT_THAT(cost_of(json::object{{"allOf", json::array{a, b}}}).status.message(),
              ::testing::HasSubstr("the list is empty"));
  const json::object c{{"required", names("a", 60'000)}}, d{{"required", names("b", 60'000)}};
  cost_of(json::object{{"allOf", json::array{c, d}}});
  cost_of(json::object{{"type", "object"}, {"required", names("a", 120'000)}});
  // Each takes minutes where every item is compared with every other.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(SchemaCost, SchemasOfARequestShareTheirLimit) {
  GrammarBuilder builder;
  JsonText text(builder);
  SchemaWork work;
  const json::value schema = doubling();
  Status last;
  int read = 0;
  for (; read < 1000 && last.ok(); ++read) last = add_json_schema(text, schema, "x", work).status();
  EXPECT_LT(read, 20);
  EXPECT_EQ(last.code(), StatusCode::kResourceExhausted);
  const std::size_t parts = builder.size();
  EXPECT_FALSE(add_json_schema(text, json::object{{"type", "string"}}, "y", work).ok());
  EXPECT_EQ(builder.size(), parts);
  EXPECT_LE(work.spent(), SchemaWork::kMost + 1);
}

TEST(SchemaCost, CopiesCountWithTheirTexts) {
  const json::object large{{"type", "string"}, {"description", std::string(1'000'000, 'x')}};
  json::array ways;
  for (int i = 0; i < 100; ++i)
    ways.push_back(json::object{{"$ref", "#/$defs/l"}, {"minLength", i}});
  const json::value schema{{"anyOf", ways}, {"$defs", json::object{{"l", large}}}};
  EXPECT_EQ(cost_of(schema).status.code(), StatusCode::kResourceExhausted);
}

// What is joined may be copied, and nest deeper, with every part.
TEST(SchemaCost, PartsThatGrowEachOtherAreRefusedBeforeTheyAreMany) {
  const auto start = std::chrono::steady_clock::now();
  const auto all_of = [](int count, const std::function<json::object(int)>& part) {
    json::array parts;
    for (int i = 0; i < count; ++i) parts.push_back(part(i));
    return cost_of(json::object{{"allOf", parts}}).status.code();
  };
  const auto deeper = [](int i) {
    return json::object{{"items", json::object{{"examples", json::array{i}}}}};
  };
  const auto patterns = [](int i) { return json::object{{"pattern", std::to_string(i)}}; };
  const auto types = [](int i) {
    json::array list;
    for (int k = 0; k < 60'000; ++k) list.push_back(i == 0 ? "null" : "string");
    return json::object{{"type", list}};
  };
  EXPECT_EQ(all_of(40'000, deeper), StatusCode::kResourceExhausted);
  EXPECT_EQ(all_of(30'000, patterns), StatusCode::kResourceExhausted);
  EXPECT_EQ(all_of(2, types), StatusCode::kResourceExhausted);
  json::object listed{{"enum", json::array(60'000, json::object())}};
  for (int i = 0; i < 60'000; ++i) listed["k" + std::to_string(i)] = 1;
  EXPECT_EQ(cost_of(listed).status.code(), StatusCode::kResourceExhausted);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

TEST(SchemaCost, SchemasOfManyPartsAreRead) {
  json::object properties;
  for (int i = 0; i < 5000; ++i)
    properties["member" + std::to_string(i)] =
        json::object{{"type", "string"}, {"format", "date-time"}};
  const Cost cost = cost_of(json::object{{"properties", properties}});
  EXPECT_TRUE(cost.status.ok()) << cost.status.message();
  json::array parts;
  for (int i = 0; i < 200; ++i)
    parts.push_back(
        json::object{{"properties", json::object{{std::to_string(i), json::object()}}}});
  EXPECT_TRUE(cost_of(json::object{{"allOf", parts}}).status.ok());
}

}  // namespace
}  // namespace strata
