#include "serve/tool_schemas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace strata::serve {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;

std::string refused(const json::value& tools) {
  const json::object body{{"tools", tools}};
  Fields fields(body);
  const auto refusal = check_tool_schemas(fields);
  EXPECT_TRUE(!refusal || refusal->http_status == 400);
  return refusal ? refusal->message : "";
}

json::value tool(std::string_view name, json::value parameters) {
  return json::object{{"function", json::object{{"name", json::string(std::string(name))},
                                                {"parameters", std::move(parameters)}}}};
}

TEST(ToolSchemas, ThatAreNoneAreRefused) {
  EXPECT_EQ(refused(json::array{tool("f", json::object{{"type", "object"}}), 1, nullptr}), "");
  EXPECT_EQ(refused(json::array{tool("f", json::object{{"not", json::object()}})}), "");
  EXPECT_THAT(refused(json::array{tool("f", json::object()), tool("g", {{"type", "thing"}})}),
              HasSubstr("tools[1].function.parameters, #/type"));
}

TEST(ToolSchemas, AreTogetherOfLimitedSize) {
  json::object definitions;
  for (int i = 0; i < 10; ++i) {
    const json::object next{{"$ref", fmt::format("#/$defs/a{}", i + 1)}, {"minLength", 0}};
    definitions[fmt::format("a{}", i)] = json::object{{"anyOf", json::array{next, next}}};
  }
  definitions["a10"] = json::object{{"type", "string"}};
  const json::value parameters{
      {"type", "object"},
      {"$defs", definitions},
      {"properties", json::object{{"x", {{"$ref", "#/$defs/a0"}, {"minLength", 0}}}}}};
  json::array tools;
  for (int i = 0; i < 1000; ++i) tools.push_back(tool("f", parameters));
  EXPECT_EQ(refused(json::array{tools[0]}), "");
  EXPECT_THAT(refused(tools), HasSubstr("too much work"));
}

}  // namespace
}  // namespace strata::serve
