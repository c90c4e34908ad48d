#include "serve/tagged_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "grammar/matcher.h"
#include "text/tool_call_parser.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<Grammar> grammar_of(const json::value& parameters) {
  GrammarBuilder builder;
  JsonText text(builder);
  SchemaWork work;
  STRATA_ASSIGN(const auto arguments, add_tagged_arguments(text, "f", parameters, work));
  const auto root = builder.add_rule("root");
  builder.define(root, arguments);
  return builder.compile(root);
}

Result<TaggedTool> planned(const json::value& parameters) {
  SchemaWork work;
  return tagged_tool("f", parameters, work);
}

// What calls of a tool with these parameters may be, and what is read of them.
class TaggedArgumentsOf {
 public:
  explicit TaggedArgumentsOf(std::string_view parameters)
      : parameters_(json::parse({parameters.data(), parameters.size()})),
        grammar_(grammar_of(parameters_)) {
    EXPECT_TRUE(grammar_.ok()) << grammar_.status().message();
  }
  // The arguments as JSON; "no" where the grammar does not allow them.
  std::string give(std::string_view text) const {
    GrammarMatcher matcher(*grammar_);
    if (!matcher.read(text) || !matcher.done()) return "no";
    ToolCallParser parser(ToolStyle::kFunctionTags, {{"f", parameters_.get_object()}}, "");
    const auto piece = parser.push(fmt::format("<tool_call>\n<function=f>\n{}</function>\n", text));
    return piece.error.ok() && piece.calls.size() == 1 ? piece.calls[0].arguments : "broken";
  }
  // Of the only argument, `a`.
  std::string value(std::string_view text) const {
    const std::string all = give(fmt::format("<parameter=a>\n{}\n</parameter>\n", text));
    return all.starts_with("{\"a\": ") ? all.substr(6, all.size() - 7) : all;
  }

 private:
  json::value parameters_;
  Result<Grammar> grammar_;
};

TaggedArgumentsOf argument_by(std::string_view schema, std::string_view more = "{}") {
  return TaggedArgumentsOf(fmt::format(
      R"({{"type": "object", "properties": {{"a": {}}}, "required": ["a"], "$defs": {}}})", schema,
      more));
}

TEST(TaggedArguments, StringsAreBareWhereverTheSchemaSaysThatTheyAreStrings) {
  for (const char* const schema :
       {R"({"enum": ["k", "l m"]})", R"({"$ref": "#/$defs/s"})",
        R"({"allOf": [{"$ref": "#/$defs/s"}]})",
        R"({"anyOf": [{"const": "k"}, {"enum": ["l m"]}]})", R"({"$ref": "#/$defs/r"})",
        R"({"oneOf": [{"$ref": "#/$defs/s"}, {"type": "string", "const": "k"}]})"}) {
    const auto tool = argument_by(
        schema, R"({"s": {"type": "string", "enum": ["k", "l m"]}, "r": {"$ref": "#/$defs/s"}})");
    EXPECT_EQ(tool.value("k"), R"("k")") << schema;
    EXPECT_EQ(tool.value("l m"), R"("l m")") << schema;
    for (const char* const other : {R"("k")", "l", "", "k "})
      EXPECT_EQ(tool.value(other), "no") << schema;
  }
  const auto free = argument_by(R"({"$ref": "#/$defs/s"})", R"({"s": {"type": "string"}})");
  for (const char* const text : {"Oslo", "5", "null", "\"k\"", "", "{\n}"})
    EXPECT_EQ(free.value(text), json::serialize(json::string(text)));
}

TEST(TaggedArguments, WhatMayBeTextOrAnotherValueIsTextUnlessItReadsAsThat) {
  for (const char* const schema :
       {R"({"type": ["string", "null"]})", R"({"anyOf": [{"type": "string"}, {"type": "null"}]})",
        R"({"anyOf": [{"$ref": "#/$defs/s"}, {"const": null}]})"}) {
    const auto tool = argument_by(schema, R"({"s": {"type": "string"}})");
    EXPECT_EQ(tool.value("null"), "null");
    EXPECT_EQ(tool.value("nullify"), R"("nullify")");
    EXPECT_EQ(tool.value(""), R"("")");
    EXPECT_EQ(tool.value("5"), R"("5")");
    EXPECT_EQ(tool.value("true"), R"("true")");
  }
  const auto number = argument_by(R"({"type": ["string", "integer"]})");
  EXPECT_EQ(number.value("-5"), "-5");
  EXPECT_EQ(number.value("1.5"), R"("1.5")");
  EXPECT_EQ(number.value("5th Avenue"), R"("5th Avenue")");
  const auto listed = argument_by(R"({"enum": ["x", null, 3, "3", false]})");
  for (const char* const text : {"null", "3", "false"}) EXPECT_EQ(listed.value(text), text);
  EXPECT_EQ(listed.value("x"), R"("x")");
  EXPECT_EQ(listed.value("y"), "no");
  EXPECT_EQ(argument_by(R"({"description": "any"})").value("[1"), R"("[1")");
  EXPECT_EQ(argument_by("true").value("[1]"), "[1]");
}

TEST(TaggedArguments, NoTextReadsAsAValueThatTheSchemaForbids) {
  const auto number =
      argument_by(R"({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 10}]})");
  EXPECT_EQ(number.value("12"), "12");
  for (const char* const text : {"5", " 5", "\n5", "\t5"}) EXPECT_EQ(number.value(text), "no");
  EXPECT_EQ(number.value("five\n5"), R"("five\n5")");
  EXPECT_EQ(number.value(""), R"("")");
  EXPECT_EQ(number.value("<b>"), R"("<b>")");
  const auto object = argument_by(R"({"anyOf": [{"type": "string"}, {"type": "object",
      "properties": {"x": {"enum": [1]}}, "required": ["x"], "additionalProperties": false}]})");
  EXPECT_EQ(object.value("{\"x\":1}"), "{\"x\":1}");
  EXPECT_EQ(object.value("{\"x\":2}"), "no");
  EXPECT_EQ(object.value("x"), R"("x")");
  EXPECT_EQ(argument_by(R"({"anyOf": [{"type": "string"}, {"const": false}]})").value("true"),
            R"("true")");
}

TEST(TaggedArguments, TextsHoldNoTagThatWouldEndThem) {
  const auto tool = argument_by(R"({"type": "string"})");
  for (const char* const text :
       {"x</parameter>y", "</parameter>", "x</tool_call>", "</tool_call>", "x\n</parameter> y"})
    EXPECT_EQ(tool.value(text), "no") << text;
  for (const char* const text : {"</param</b>", "\nx\n", "</tool_ca", "<</parameter"})
    EXPECT_EQ(tool.value(text), json::serialize(json::string(text)));
}

TEST(TaggedArguments, ReferencesLeadIntoTheParametersAsAWhole) {
  const TaggedArgumentsOf tool(R"({"type": "object", "properties": {"v": {"type": "boolean"},
      "w": {"$ref": "#/properties/v"}, "child": {"$ref": "#"},
      "more": {"type": "array", "items": {"$ref": "#"}}}, "required": ["v", "w"],
      "additionalProperties": false})");
  const std::string start =
      "<parameter=v>\ntrue\n</parameter>\n<parameter=w>\nfalse\n</parameter>\n";
  EXPECT_EQ(tool.give(start), R"({"v": true, "w": false})");
  EXPECT_EQ(tool.give(start + "<parameter=child>\n{\"v\":true,\"w\":true}\n</parameter>\n"),
            R"({"v": true, "w": false, "child": {"v":true,"w":true}})");
  EXPECT_EQ(tool.give(start + "<parameter=child>\n{\"v\":true}\n</parameter>\n"), "no");
  EXPECT_EQ(tool.give(start + "<parameter=more>\n[{\"v\":1}]\n</parameter>\n"), "no");
}

TEST(TaggedArguments, AreFoundBehindReferencesAndAlternatives) {
  const std::string one = "<parameter=a>\n1\n</parameter>\n";
  const std::string two = "<parameter=b>\n2\n</parameter>\n";
  const std::string a = R"({"properties": {"a": {"type": "integer"}}, "required": ["a"]})";
  const std::string b = R"({"properties": {"b": {"type": "string"}}, "required": ["b"]})";
  for (const std::string& schema :
       {fmt::format(R"({{"$ref": "#/$defs/x", "$defs": {{"x": {}}}}})", a),
        fmt::format(R"({{"allOf": [{}]}})", a),
        fmt::format(R"({{"anyOf": [{}, {{"type": "string"}}]}})", a)}) {
    EXPECT_EQ(TaggedArgumentsOf(schema).give(one), R"({"a": 1})") << schema;
    EXPECT_EQ(TaggedArgumentsOf(schema).give(""), "no") << schema;
  }
  const TaggedArgumentsOf any(fmt::format(R"({{"type": "object", "oneOf": [{}, {}]}})", a, b));
  EXPECT_EQ(any.give(one), R"({"a": 1})");
  EXPECT_EQ(any.give(two), R"({"b": "2"})");
  EXPECT_EQ(any.give(one + two), "no");
  const TaggedArgumentsOf all(fmt::format(R"({{"allOf": [{}, {}]}})", a, b));
  EXPECT_EQ(all.give(one + two), R"({"a": 1, "b": "2"})");
  EXPECT_EQ(all.give(one), "no");
  const TaggedArgumentsOf unnamed(R"({"type": "object", "required": ["b"]})");
  EXPECT_EQ(unnamed.give(two), R"({"b": 2})");
  EXPECT_EQ(unnamed.give(""), "no");
}

TEST(TaggedArguments, MayHaveOtherNamesWhereTheSchemaSaysSo) {
  const TaggedArgumentsOf tool(R"({"type": "object", "properties": {"a": {"type": "string"}},
      "additionalProperties": {"type": "integer"}})");
  EXPECT_EQ(tool.give("<parameter=a>\n1\n</parameter>\n<parameter=ab>\n2\n</parameter>\n"
                      "<parameter=é>\n3\n</parameter>\n"),
            R"({"a": "1", "ab": 2, "é": 3})");
  for (const char* const name : {"", "a b", "a>", "<", "a\n"})
    EXPECT_EQ(tool.give(fmt::format("<parameter={}>\n2\n</parameter>\n", name)), "no") << name;
  EXPECT_EQ(tool.give("<parameter=ab>\nx\n</parameter>\n"), "no");
  EXPECT_EQ(tool.give("<parameter=ab>\n2\n</parameter>\n<parameter=a>\n2\n</parameter>\n"), "no");
  const TaggedArgumentsOf free(R"({"type": "object", "additionalProperties": true})");
  EXPECT_EQ(free.give("<parameter=x>\nword\n</parameter>\n<parameter=y>\n[1]\n</parameter>\n"),
            R"({"x": "word", "y": [1]})");
  const TaggedArgumentsOf closed(R"({"type": "object", "properties": {}})");
  EXPECT_EQ(closed.give(""), "{}");
  EXPECT_EQ(closed.give("<parameter=x>\n1\n</parameter>\n"), "no");
}

TEST(TaggedArguments, WhatCannotBeWrittenIsLeftOutOrRefused) {
  const auto plan = [](std::string_view properties, std::string_view required) {
    return planned(json::parse(fmt::format(
        R"({{"type": "object", "properties": {{{}}}, "required": {}}})", properties, required)));
  };
  const std::string number = R"("n": {"type": "integer"})";
  for (const char* const odd :
       {R"("a\nb": {"type": "integer"})", R"("a>b": {})", R"("a<b": {})", R"("": {})",
        R"("x": {"type": "string", "enum": ["q\n</parameter>\n"]})",
        R"("x": {"$ref": "#/$defs/tag"})", R"("x": {"enum": ["</tool_call>"]})"}) {
    const std::string both = fmt::format("{}, {}", number, odd);
    const std::string name(json::parse(fmt::format("{{{}}}", odd)).get_object().begin()->key());
    const auto optional = plan(odd == std::string_view(R"("x": {"$ref": "#/$defs/tag"})")
                                   ? both + R"(}, "$defs": {"tag": {"enum": ["</parameter>"]})"
                                   : both,
                               R"(["n"])");
    ASSERT_TRUE(optional.ok()) << optional.status().message();
    ASSERT_EQ(optional->ways.size(), 1u);
    EXPECT_EQ(optional->ways[0].named.size(), 1u) << odd;
    EXPECT_THAT(optional->notes, ::testing::Contains(HasSubstr("the tool f do without"))) << odd;
    if (odd == std::string_view(R"("x": {"$ref": "#/$defs/tag"})")) continue;
    const auto required = plan(both, json::serialize(json::array{json::string(name)}));
    ASSERT_FALSE(required.ok()) << odd;
    EXPECT_THAT(required.status().message(), HasSubstr("the tool f: ")) << odd;
  }
  const auto some = plan(R"("x": {"enum": ["</parameter>", "y"]})", R"(["x"])");
  ASSERT_TRUE(some.ok());
  EXPECT_THAT(some->notes, ElementsAre("calls of the tool f cannot give some values of x"));
  EXPECT_THAT(plan(number, "[]")->notes, IsEmpty());
  EXPECT_FALSE(planned(json::parse(R"({"type": "object", "minProperties": 1})")).ok());
  EXPECT_FALSE(planned(json::parse(R"({"type": "string"})")).ok());
}

TEST(TaggedArguments, SchemasThatReferToThemselvesEnd) {
  for (const char* const schema :
       {R"({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]})", R"({"$ref": "#"})",
        R"({"allOf": [{"$ref": "#"}, {"$ref": "#"}]})",
        R"({"properties": {"a": {"$ref": "#/properties/a"}}})",
        R"({"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"},
            {"type": "string"}]}}})"})
    EXPECT_FALSE(planned(json::parse(schema)).ok()) << schema;
}

}  // namespace
}  // namespace strata::serve
