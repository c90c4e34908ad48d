#include "text/tool_call_parser.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

#include "text/answer.h"

namespace strata {
namespace {

namespace json = boost::json;

std::vector<Tool> weather_and_files() {
  const auto made = read_tools(json::parse(R"([
      {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}}},
      {"type": "function", "function": {"name": "write_file", "parameters": {"type": "object",
        "properties": {"path": {"type": "string"}, "mode": {"type": ["string", "null"]},
                       "force": {"type": "boolean"}, "lines": {"type": "array"},
                       "any": {}}}}}])"));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return *made;
}

// Everything that an output came to.
struct ParsedOutput {
  std::string content;
  std::vector<ToolCall> calls;
  int errors = 0;

  std::string text() const {
    std::string out = "'" + content + "'";
    for (const ToolCall& call : calls)
      out += " " + call.id + " " + call.name + "(" + call.arguments + ")";
    return out + (errors > 0 ? fmt::format(" errors: {}", errors) : "");
  }
};

struct Feed {
  ToolStyle style;
  bool complete = true;
  bool has_tools = true;
};

// The output in pieces of the sizes that `next_size` gives.
template <typename NextSize>
ParsedOutput parse_output(const Feed& feed, std::string_view text, NextSize next_size) {
  ToolCallParser parser(feed.style, feed.has_tools ? weather_and_files() : std::vector<Tool>(),
                        "call_");
  ParsedOutput out;
  const auto take = [&](const ToolCallParser::Piece& piece) {
    out.content += piece.content;
    if (!piece.error.ok()) ++out.errors;
    for (const ToolCallDelta& call : piece.calls) {
      const auto index = static_cast<std::size_t>(call.index);
      if (index == out.calls.size()) {
        EXPECT_FALSE(call.name.empty());
        out.calls.push_back({call.id, call.name, {}});
      } else {
        EXPECT_EQ(call.id + call.name, "") << "once only";
      }
      ASSERT_EQ(index + 1, out.calls.size());
      out.calls.back().arguments += call.arguments;
    }
  };
  while (!text.empty()) {
    const std::size_t size = std::min<std::size_t>(next_size(), text.size());
    take(parser.push(text.substr(0, size)));
    text.remove_prefix(size);
  }
  take(parser.finish(feed.complete));
  return out;
}

// The same for any chunking.
std::string outcome(const Feed& feed, std::string_view text) {
  std::string whole = parse_output(feed, text, [&] { return text.size(); }).text();
  for (std::size_t size = 1; size < std::min<std::size_t>(text.size(), 40); ++size)
    EXPECT_EQ(parse_output(feed, text, [&] { return size; }).text(), whole) << "pieces of " << size;
  return whole;
}

constexpr Feed kHermes{ToolStyle::kHermes}, kLlama{ToolStyle::kLlama},
    kTagged{ToolStyle::kFunctionTags};

TEST(HermesCalls, AreToldFromTheTextAroundThem) {
  EXPECT_EQ(outcome(kHermes,
                    "Let me look.\n<tool_call>\n{\"name\": \"get_weather\", \"arguments\": "
                    "{\"city\": \"Oslo\", \"days\": 2}}\n</tool_call>"),
            "'Let me look.' call_0 get_weather({\"city\": \"Oslo\", \"days\": 2})");
  EXPECT_EQ(outcome(kHermes, "<tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call> Done."),
            "'Done.' call_0 a({})");
  EXPECT_EQ(outcome(kHermes, " no call <tool> \n"), "' no call <tool> \n'");
}

TEST(HermesCalls, MayBeSeveral) {
  EXPECT_EQ(outcome(kHermes,
                    "<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": [1, {\"y\": null}]}}\n"
                    "</tool_call>\n<tool_call>\n{\"arguments\": { }, \"name\": \"b\"}\n"
                    "</tool_call>\n"),
            "'' call_0 a({\"x\": [1, {\"y\": null}]}) call_1 b({ })");
}

TEST(HermesCalls, TagsInsideStringsAreText) {
  EXPECT_EQ(outcome(kHermes, R"(<tool_call>{"name": "a", "arguments": {"x": "</tool_call> \" }"}})"
                             "</tool_call>"),
            R"('' call_0 a({"x": "</tool_call> \" }"}))");
}

TEST(HermesCalls, WithoutArgumentsGetNone) {
  EXPECT_EQ(outcome(kHermes, R"(<tool_call>{"name": "now"}</tool_call>)"), "'' call_0 now({})");
}

TEST(HermesCalls, AForgottenBracketOrEndTagDoesNoHarm) {
  EXPECT_EQ(outcome(kHermes, R"(<tool_call>{"name": "a", "arguments": {"x": 1}</tool_call>)"),
            R"('' call_0 a({"x": 1}))");
  EXPECT_EQ(outcome(kHermes, R"(<tool_call>{"name": "a", "arguments": {"x": 1}}<tool_call>)"
                             R"({"name": "b", "arguments": {}})"),
            R"('' call_0 a({"x": 1}) call_1 b({}))");
  EXPECT_EQ(outcome(kHermes, R"(<tool_call>{"name": "a", "arguments": {}, "id": 12 oh)"),
            R"(', "id": 12 oh' call_0 a({}))");
}

TEST(HermesCalls, LineBreaksInStringsAreEscaped) {
  EXPECT_EQ(outcome(kHermes, "<tool_call>{\"name\": \"a\", \"arguments\": {\"x\": \"1\n2\"}}"),
            R"('' call_0 a({"x": "1\n2"}))");
}

// Whatever is no call stays in the text, as it is.
TEST(HermesCalls, ArgumentsThatAreNoObjectAreContent) {
  for (const std::string_view text :
       {R"(<tool_call>{"name": "a", "arguments": [1, 2]}</tool_call>)",
        R"(<tool_call>{"name": "a", "arguments": 7}</tool_call>)",
        R"(<tool_call>{"name": "a", "arguments": null}</tool_call>)",
        R"(<tool_call>{"name": "a", "arguments": "[1]"}</tool_call>)",
        R"(<tool_call>{"name": "a", "arguments": "no"}</tool_call>)",
        R"(<tool_call>{"name": ["a"], "arguments": {}}</tool_call>)",
        R"(<tool_call>{"name": "", "arguments": {}}</tool_call>)",
        R"(<tool_call>{"arguments": {}}</tool_call>)", "<tool_call>\nget_weather\n</tool_call>",
        "<tool_call>{}</tool_call>", "<tool_call>[{\"name\"", "a <tool_call", "<tool_call> \n"})
    EXPECT_EQ(outcome(kHermes, text), fmt::format("'{}'", text));
}

TEST(HermesCalls, ACallBehindABrokenOneIsFound) {
  EXPECT_EQ(outcome(kHermes, R"(<tool_call><tool_call>{"name": "a", "arguments": {}}</tool_call>)"),
            "'<tool_call>' call_0 a({})");
}

TEST(HermesCalls, ThatBreakOffAreAnErrorOnlyWhereTheModelWasDone) {
  const std::string_view text = R"(<tool_call>{"name": "a", "arguments": {"x": "ser)";
  EXPECT_EQ(outcome(kHermes, text), R"('' call_0 a({"x": "ser) errors: 1)");
  EXPECT_EQ(outcome({ToolStyle::kHermes, false}, text), R"('' call_0 a({"x": "ser))");
}

TEST(ToolCalls, ThatAreCutSaySo) {
  const auto cut = [](ToolStyle style, std::string_view text) {
    ToolCallParser parser(style, weather_and_files(), "");
    parser.push(text);
    return parser.finish(false).cut;
  };
  const std::string_view call = R"(<tool_call>{"name": "a", "arguments": {"x": [1]}}</tool_call>)";
  const std::size_t name = call.find("{\"x"), whole = call.find("}}");
  for (std::size_t size = 0; size <= call.size(); ++size)
    EXPECT_EQ(cut(ToolStyle::kHermes, call.substr(0, size)), size > name && size <= whole) << size;
  EXPECT_TRUE(cut(ToolStyle::kHermes, std::string(call) + std::string(call.substr(0, name + 2))));
  const std::string_view bare = R"({"name": "get_weather", "parameters": {"city": "Oslo"}})";
  EXPECT_TRUE(cut(ToolStyle::kLlama, bare.substr(0, bare.size() - 2)));
  EXPECT_FALSE(cut(ToolStyle::kLlama, bare.substr(0, bare.size() - 1)));
  const std::string_view tagged =
      "<tool_call><function=write_file><parameter=path>a</parameter></function></tool_call>";
  const std::size_t end = tagged.find("</tool_call>");
  EXPECT_TRUE(cut(ToolStyle::kFunctionTags, tagged.substr(0, end - 1)));
  EXPECT_FALSE(cut(ToolStyle::kFunctionTags, tagged.substr(0, end)));
  EXPECT_FALSE(cut(ToolStyle::kFunctionTags, "<tool_call><function=write"));
}

TEST(HermesCalls, MalformedArgumentsAreAnErrorOnce) {
  EXPECT_EQ(
      outcome(kHermes, R"(<tool_call>{"name": "a", "arguments": {"x": 1,, "y": 2}}</tool_call>)"
                       R"(<tool_call>{"name": "b", "arguments": {x}}</tool_call>)"),
      R"(', "y": 2}}</tool_call>x}}</tool_call>' call_0 a({"x": 1,) call_1 b({) errors: 1)");
}

TEST(HermesCalls, TheNameComesWithTheStartOfTheArguments) {
  ToolCallParser parser(ToolStyle::kHermes, {}, "id");
  EXPECT_TRUE(parser.push("<tool_call>{\"name\": \"a\", \"arguments\": ").calls.empty());
  const auto piece = parser.push("{\"x\"");
  ASSERT_EQ(piece.calls.size(), 1u);
  EXPECT_EQ(piece.calls[0].id, "id0");
  EXPECT_EQ(piece.calls[0].name, "a");
  EXPECT_EQ(piece.calls[0].arguments, "{\"x\"");
  EXPECT_EQ(parser.push(": ").calls[0].arguments, ": ");
}

TEST(HermesCalls, TextIsHeldBackOnlyWhereItMayBecomeATag) {
  ToolCallParser parser(ToolStyle::kHermes, {}, "");
  EXPECT_EQ(parser.push("a <tool").content, "a");
  EXPECT_EQ(parser.push("s> b").content, " <tools> b");
}

TEST(LlamaCalls, AreBareObjectsAtTheStart) {
  EXPECT_EQ(outcome(kLlama,
                    "\n"
                    R"({"name": "get_weather", "parameters": {"city": "Oslo"}})"),
            R"('' call_0 get_weather({"city": "Oslo"}))");
  EXPECT_EQ(outcome(kLlama, R"(<|python_tag|>{"type": "function", "name": "get_weather", )"
                            R"("parameters": {}})"),
            "'' call_0 get_weather({})");
  EXPECT_EQ(outcome(kLlama, R"(I see. <|python_tag|>{"name": "get_weather", "parameters": {}})"),
            "'I see.' call_0 get_weather({})");
  EXPECT_EQ(outcome(kLlama, R"({"name": "get_weather", "parameters": {}}; )"
                            R"({"name": "write_file", "parameters": {"path": "a"}})"),
            R"('' call_0 get_weather({}) call_1 write_file({"path": "a"}))");
}

TEST(LlamaCalls, OtherJsonIsContent) {
  for (const std::string_view text :
       {R"({"name": "Bob", "age": 5})", R"({"name": "get_weather"})", R"({"answer": [1, 2]})", "{}",
        R"({"name": "unheard_of", "parameters": {}})",
        R"({"name": "get_weather", "parameters": 1})",
        R"(So: {"name": "get_weather", "parameters": {}})", "<|python_tag|>print(1)", "{"})
    EXPECT_EQ(outcome(kLlama, text), fmt::format("'{}'", text));
  EXPECT_EQ(outcome({ToolStyle::kLlama, true, false}, R"({"name": "any", "parameters": {}})"),
            "'' call_0 any({})");
  EXPECT_EQ(outcome(kLlama, R"({"name": "get_weather", "parameters": {}}; and more)"),
            "'; and more' call_0 get_weather({})");
}

TEST(LlamaCalls, ParametersInAStringAreParsed) {
  EXPECT_EQ(outcome(kLlama, R"({"name": "get_weather", "parameters": " {\"city\": \"Zürich\"}"})"),
            R"('' call_0 get_weather({"city": "Zürich"}))");
  const std::string_view broken = R"({"name": "get_weather", "parameters": "{\"city\": "})";
  EXPECT_EQ(outcome(kLlama, broken), fmt::format("'{}'", broken));
}

TEST(TaggedCalls, BecomeJsonByTheSchemasOfTheTools) {
  EXPECT_EQ(outcome(kTagged,
                    "I write.\n\n<tool_call>\n<function=write_file>\n<parameter=path>\n12\n"
                    "</parameter>\n<parameter=lines>\n[1, \"a\"]\n</parameter>\n<parameter=force>"
                    "True</parameter>\n<parameter=mode>\nnull\n</parameter>\n</function>\n"
                    "</tool_call>"),
            R"('I write.' call_0 write_file({"path": "12", "lines": [1, "a"], "force": true, )"
            R"("mode": null}))");
  EXPECT_EQ(outcome(kTagged,
                    "<tool_call><function=write_file><parameter=mode>7</parameter>"
                    "<parameter=any>7</parameter><parameter=more>[x</parameter></function>"
                    "</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"),
            R"('' call_0 write_file({"mode": "7", "any": 7, "more": "[x"}) call_1 now({}))");
}

TEST(TaggedCalls, KeepTheLineBreaksOfValues) {
  EXPECT_EQ(outcome(kTagged,
                    "<tool_call><function=write_file><parameter=path>\n\n a<b \"\\\n\n"
                    "</param>\n</parameter></function></tool_call>"),
            R"('' call_0 write_file({"path": "\n a<b \"\\\n\n</param>"}))");
  EXPECT_EQ(outcome(kTagged,
                    "<tool_call><function=write_file><parameter=path>\n</parameter>"
                    "</function></tool_call>"),
            R"('' call_0 write_file({"path": ""}))");
}

TEST(TaggedCalls, AKeyMayComeAgainAndHoldSpaces) {
  EXPECT_EQ(outcome(kTagged,
                    "<tool_call><function=f><parameter=a b>1</parameter><parameter=a b>2"
                    "</parameter></function></tool_call>"),
            R"('' call_0 f({"a b": 1, "a b": 2}))");
}

// Of every value the arguments that a tool with these properties gets.
std::string arguments_of_value(std::string_view parameters, std::string_view value) {
  const auto tools = read_tools(json::parse(
      fmt::format(R"([{{"function": {{"name": "f", "parameters": {}}}}}])", parameters)));
  EXPECT_TRUE(tools.ok());
  ToolCallParser parser(ToolStyle::kFunctionTags, *tools, "");
  const auto piece = parser.push(fmt::format(
      "<tool_call>\n<function=f>\n<parameter=a>\n{}\n</parameter>\n</function>", value));
  return piece.calls.size() == 1 ? piece.calls[0].arguments : "no call";
}

TEST(TaggedCalls, ValuesAreReadByTheWholeSchema) {
  const std::string_view definitions =
      R"("$defs": {"s": {"type": "string"}, "t": {"$ref": "#/$defs/s"},
                   "p": {"properties": {"a": {"$ref": "#/$defs/s"}}}})";
  for (const char* const schema :
       {R"("properties": {"a": {"$ref": "#/$defs/t"}})", R"("$ref": "#/$defs/p")",
        R"("properties": {"a": {"allOf": [{"$ref": "#/$defs/s"}, {"maxLength": 9}]}})",
        R"("properties": {"a": {"minLength": 1}})", R"("allOf": [{"$ref": "#/$defs/p"}, {}])",
        R"("anyOf": [{"$ref": "#/$defs/p"}, {"required": ["b"]}])",
        R"("properties": {"b": {}}, "additionalProperties": {"$ref": "#/$defs/s"})"})
    EXPECT_EQ(arguments_of_value(fmt::format("{{{}, {}}}", schema, definitions), "12"),
              R"({"a": "12"})")
        << schema;
  const std::string_view number = R"({"properties": {"a": {"anyOf": [{"type": "string"},
      {"type": "integer"}]}}})";
  EXPECT_EQ(arguments_of_value(number, "12"), R"({"a": 12})");
  EXPECT_EQ(arguments_of_value(number, "1.5"), R"({"a": "1.5"})");
  EXPECT_EQ(arguments_of_value(R"({"properties": {"a": {"type": "integer"}}})", "1.0"),
            R"({"a": 1.0})");
  const std::string_view loop = R"({"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"},
      {"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}})";
  EXPECT_EQ(arguments_of_value(loop, "12"), R"({"a": 12})");
}

TEST(TaggedCalls, MayLackTheOuterTag) {
  EXPECT_EQ(outcome(kTagged, "Well <function=now></function> and"), "'Well and' call_0 now({})");
}

TEST(TaggedCalls, AnUnclosedValueIsAnErrorOnce) {
  EXPECT_EQ(outcome(kTagged,
                    "\n\n<tool_call>\n<function=write_file>\n<parameter=path>\nprobe.txt\n"
                    "</function>\n</tool_call>"),
            R"('' call_0 write_file({"path": "probe.txt\n</function>\n) errors: 1)");
}

TEST(TaggedCalls, WhatIsNoFunctionIsContent) {
  for (const std::string_view text :
       {"<tool_call>\n{\"name\": \"a\"}\n</tool_call>", "<tool_call><function=>", "<function=a b>",
        "<tool_call><function=a", "a < b", "<func"})
    EXPECT_EQ(outcome(kTagged, text), fmt::format("'{}'", text));
}

TEST(ToolCalls, OfNoStyleAreContent) {
  const std::string_view text = " <tool_call>{\"name\": \"a\", \"arguments\": {}}</tool_call> ";
  EXPECT_EQ(outcome({ToolStyle::kNone}, text), fmt::format("'{}'", text));
}

// Random outputs of what calls are made of: never a throw, never lost text, never another outcome
// for another chunking, and arguments of whole calls are objects.
TEST(ToolCalls, AreTheSameForAnyChunkingOfRandomText) {
  const std::vector<std::string_view> parts = {
      "<tool_call>",
      "</tool_call>",
      "<function=",
      "write_file",
      ">",
      "</function>",
      "<parameter=",
      "path",
      "lines",
      "</parameter>",
      "\n",
      " ",
      "{",
      "}",
      "\"name\"",
      ": ",
      "\"get_weather\"",
      ", ",
      "\"arguments\"",
      "\"parameters\"",
      "[1]",
      "\"{\\\"a\\\": 1}\"",
      "<|python_tag|>",
      ";",
      "12",
      "true",
      "é",
      "<",
      "{\"name\": \"get_weather\", \"arguments\": {\"x\": ",
      "<tool_call>\n<function=write_file>\n<parameter=path>\n"};
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::size_t count = below(24); count > 0; --count) text += parts[below(parts.size())];
    for (const ToolStyle style :
         {ToolStyle::kHermes, ToolStyle::kLlama, ToolStyle::kFunctionTags}) {
      const Feed feed{style, below(2) == 0, below(2) == 0};
      const ParsedOutput whole = parse_output(feed, text, [&] { return text.size(); });
      const std::string expected = whole.text();
      ASSERT_EQ(parse_output(feed, text, [] { return 1; }).text(), expected) << text;
      ASSERT_EQ(parse_output(feed, text, [&] { return 1 + below(9); }).text(), expected) << text;
      ASSERT_LE(whole.errors, 1);
      if (whole.errors > 0 || !feed.complete) continue;
      for (const ToolCall& call : whole.calls) {
        boost::system::error_code error;
        ASSERT_TRUE(json::parse(call.arguments, error).is_object()) << text;
      }
    }
  }
}

TEST(ToolCalls, TimeIsLinearInTheText) {
  // Quadratic ways would need minutes.
  for (const std::string_view piece : {"\n", "<tool_call>", "<tool_call>{\"", "<", "{"}) {
    ToolCallParser parser(ToolStyle::kHermes, {}, "");
    std::size_t shown = 0, pushed = 0;
    for (; pushed < 1'000'000; pushed += piece.size()) shown += parser.push(piece).content.size();
    shown += parser.finish(false).content.size();
    EXPECT_EQ(shown, pushed) << piece;
  }
}

}  // namespace
}  // namespace strata
