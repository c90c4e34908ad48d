#include "text/json_kinds.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace strata {
namespace {

namespace json = boost::json;

unsigned kinds(std::string_view schema) {
  const json::value document = json::parse({schema.data(), schema.size()});
  return KindReader(document.get_object()).kinds(document);
}

TEST(JsonKinds, AreWhatTheKeywordsSay) {
  EXPECT_EQ(kinds(R"({"type": ["string", "null"]})"), JsonKinds::kString | JsonKinds::kNull);
  EXPECT_EQ(kinds(R"({"enum": [1, true]})"), JsonKinds::kInteger | JsonKinds::kTrue);
  EXPECT_EQ(kinds(R"({"type": "number", "allOf": [{"type": "integer"}]})"), JsonKinds::kInteger);
  EXPECT_EQ(kinds(R"({"minLength": 1})"), JsonKinds::kString);
  EXPECT_EQ(kinds("{}"), JsonKinds::kAny);
}

TEST(JsonKinds, DoNotDependOnWhatWasAskedBefore) {
  const json::value document = json::parse(R"({"properties": {
      "a": {"type": ["integer", "string"], "allOf": [{"$ref": "#/properties/b"}]},
      "b": {"anyOf": [{"$ref": "#/properties/a"}, {"type": "null"}]},
      "c": {"$ref": "#/properties/c", "type": "boolean"},
      "d": {"anyOf": [{"$ref": "#/properties/c"}, {"$ref": "#/properties/b"}]}}})");
  const std::string_view keys[] = {"a", "b", "c", "d", "a"};
  for (std::size_t first = 0; first < 4; ++first) {
    KindReader shared(document.get_object());
    shared.member_kinds(keys[first]);
    for (const std::string_view key : keys) {
      KindReader fresh(document.get_object());
      EXPECT_EQ(shared.member_kinds(key), fresh.member_kinds(key)) << first << key;
    }
  }
}

// `count` members that are one of many, which are all one large schema.
std::size_t steps_for(int count) {
  json::object large{{"type", "integer"}};
  for (int i = 0; i < 4000; ++i) large[std::to_string(i)] = 1;
  json::array ways;
  for (int i = 0; i < 1000; ++i) ways.push_back(json::object{{"$ref", "#/$defs/large"}});
  json::object properties;
  for (int i = 0; i < count; ++i)
    properties[std::to_string(i)] = json::object{{"$ref", "#/$defs/ways"}};
  const json::object document{
      {"properties", properties},
      {"$defs", json::object{{"large", large}, {"ways", json::object{{"anyOf", ways}}}}}};
  KindReader reader(document);
  for (const auto& [key, ignored] : properties)
    EXPECT_EQ(reader.member_kinds(std::string_view(key.data(), key.size())), JsonKinds::kInteger);
  return reader.steps();
}

TEST(JsonKinds, LookOnceAtEveryPart) {
  EXPECT_LT(steps_for(1), 10'000u);
  EXPECT_LT(steps_for(500), 2 * steps_for(1));
}

TEST(JsonKinds, HaveALimitBeyondWhichAllIsAllowed) {
  json::object document;
  for (int i = 0; i < 14; ++i) {
    json::array ways;
    for (int j = 0; j < 9; ++j)
      ways.push_back(json::object{{"$ref", i == 13 ? "#" : fmt::format("#/a{}", i + 1)}});
    document[fmt::format("a{}", i)] = json::object{{"allOf", ways}};
  }
  document["$ref"] = "#/a0";
  KindReader reader(document);
  EXPECT_EQ(reader.kinds(document), JsonKinds::kAny);
  EXPECT_LE(reader.steps(), KindReader::kMostSteps + 1);
}

}  // namespace
}  // namespace strata
