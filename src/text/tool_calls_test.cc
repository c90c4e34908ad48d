#include "text/tool_calls.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "text/json_scanner.h"
#include "text/tool_call_parser.h"

namespace strata {
namespace {

namespace json = boost::json;

std::vector<Tool> tools_in(std::string_view text) {
  const auto made = read_tools(json::parse(text));
  EXPECT_TRUE(made.ok()) << made.status().message();
  return made.ok() ? *made : std::vector<Tool>();
}

std::string tools_refusal(std::string_view text) {
  const auto made = read_tools(json::parse(text));
  EXPECT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kInvalidArgument);
  return made.status().message();
}

constexpr std::string_view kTwoTools = R"([
    {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object",
      "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
      "required": ["city"]}}},
    {"type": "function", "function": {"name": "now"}}])";

TEST(Tools, AreReadAsClientsGiveThem) {
  const std::vector<Tool> tools = tools_in(kTwoTools);
  ASSERT_EQ(tools.size(), 2u);
  EXPECT_EQ(tools[0].name, "get_weather");
  EXPECT_TRUE(tools[0].parameters.contains("required"));
  EXPECT_EQ(json::serialize(tools[1].parameters), R"({"type":"object","properties":{}})");
  EXPECT_TRUE(tools_in("[]").empty());
  EXPECT_TRUE(tools_in("null").empty());
  EXPECT_EQ(tools_in(R"([{"function": {"name": "a", "parameters": {}}}])")[0].parameters.size(),
            2u);
}

TEST(Tools, OfAnotherFormAreRefusedWithTheirPlace) {
  EXPECT_EQ(tools_refusal("{}"), "\"tools\" must be a list of tools");
  EXPECT_EQ(tools_refusal("[1]"), "tools[0]: must be an object");
  EXPECT_EQ(tools_refusal(R"([{"type": "web_search"}])"),
            "tools[0]: \"type\" must be \"function\"");
  EXPECT_EQ(tools_refusal(R"([{"type": "function"}])"),
            "tools[0]: \"function\" must be an object with a name and parameters");
  for (const char* name : {"1", "\"\"", "\"a b\"", "\"a>\"", "\"\\u00e9\"", "null"})
    EXPECT_NE(
        tools_refusal(fmt::format(R"([{{"function": {{"name": {}}}}}])", name)).find("letters"),
        std::string::npos);
  EXPECT_EQ(tools_refusal(R"([{"function": {"name": "a", "parameters": "x"}}])"),
            "tools[0]: \"function.parameters\" must be a JSON schema, an object");
  EXPECT_EQ(tools_refusal(R"([{"function": {"name": "a"}}, {"function": {"name": "a"}}])"),
            "tools[1]: a tool named \"a\" is there already");
}

TEST(ToolStyles, AreToldByWhatSurroundsACall) {
  const auto style = [](std::string_view text) { return tool_style_of(text, "NAME", "KEY"); };
  EXPECT_EQ(style("<tool_call>\n{\"name\": \"NAME\", \"arguments\": {\"KEY\": 1}}\n</tool_call>"),
            ToolStyle::kHermes);
  EXPECT_EQ(style("<|end_header_id|>\n\n{\"name\": \"NAME\", \"parameters\": {\"KEY\": 1}}"),
            ToolStyle::kLlama);
  EXPECT_EQ(style("<tool_call>\n<function=NAME>\n<parameter=KEY>\n1\n</parameter>"),
            ToolStyle::kFunctionTags);
  for (const std::string_view other :
       {"", "NAME", "<function=NAME>{\"KEY\": 1}</function>",
        "<tool_calls>[{\"name\": \"NAME\", \"arguments\": {\"KEY\": 1}}]",
        "[TOOL_CALLS][{\"name\": \"NAME\", \"parameters\": {\"KEY\": 1}}]",
        "call<|role_sep|>\n{\"name\": \"NAME\", \"arguments\": {\"KEY\": 1}}",
        "[TOOL_CALLS]NAME[ARGS]{\"KEY\": 1}", "<tool_call>NAME\n<arg_key>KEY</arg_key>"})
    EXPECT_EQ(style(other), ToolStyle::kNone) << other;
}

TEST(ToolGrammars, GiveWhatTheParserReads) {
  const std::vector<Tool> tools = tools_in(kTwoTools);
  for (const ToolStyle style : {ToolStyle::kHermes, ToolStyle::kLlama, ToolStyle::kFunctionTags}) {
    const ToolGrammar grammar = tool_grammar(style, tools);
    ASSERT_EQ(grammar.calls.size(), 2u);
    EXPECT_EQ(grammar.repeats, style != ToolStyle::kLlama);
    std::string text;
    for (const ToolGrammar::Call& call : grammar.calls) {
      for (const ToolGrammar::Trigger& trigger : grammar.triggers) {
        EXPECT_TRUE(call.begin.starts_with(trigger.begin)) << call.begin;
        EXPECT_TRUE(trigger.begin.ends_with(trigger.text)) << trigger.text;
      }
      const bool tagged = style == ToolStyle::kFunctionTags;
      EXPECT_EQ(grammar.tagged, tagged);
      text += (text.empty() ? "" : grammar.separator) + call.begin +
              (tagged ? "<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n2\n</parameter>\n"
                      : R"({"city": "Oslo", "days": 2})") +
              call.end;
    }
    ToolCallParser parser(style, tools, "");
    auto piece = parser.push(text);
    EXPECT_TRUE(piece.content.empty()) << piece.content;
    EXPECT_TRUE(piece.error.ok());
    ASSERT_EQ(piece.calls.size(), 2u);
    EXPECT_EQ(piece.calls[0].name, "get_weather");
    EXPECT_EQ(piece.calls[0].arguments, R"({"city": "Oslo", "days": 2})");
    EXPECT_EQ(piece.calls[1].name, "now");
    EXPECT_EQ(json::serialize(grammar.calls[0].schema), json::serialize(tools[0].parameters));
    EXPECT_TRUE(parser.finish(true).error.ok());
  }
}

std::string nested(std::size_t depth) {
  std::string out;
  for (std::size_t i = 0; i < depth; ++i) out += "{\"a\":";
  return out + "1" + std::string(depth, '}');
}

TEST(Arguments, NestAsDeepAsBodies) {
  for (const std::size_t depth : {1u, 32u, 33u, 60u, 128u}) {
    const auto made = arguments_of(nested(depth));
    ASSERT_TRUE(made) << depth;
    EXPECT_EQ(json::serialize(*made), nested(depth));
  }
  EXPECT_FALSE(arguments_of(nested(kMostJsonDepth + 1)));
}

TEST(Arguments, HalvesOfSurrogatePairsAreReplaced) {
  const auto value_of = [](std::string_view text) {
    const auto made = arguments_of(fmt::format("{{\"a\": \"{}\"}}", text));
    return made ? std::string(made->at("a").as_string()) : "none";
  };
  EXPECT_EQ(value_of(R"(\ud83d\ude00)"), "\U0001F600");
  EXPECT_EQ(value_of(R"(\uD83D\uDE00\u00e9)"), "\U0001F600\u00e9");
  for (const char* const half : {R"(\ud800)", R"(\udc00)", R"(\uDBFF)", R"(\uDFFF)"})
    EXPECT_EQ(value_of(fmt::format("x{}y", half)), "x\uFFFDy") << half;
  EXPECT_EQ(value_of(R"(\ud800\ud800)"), "\uFFFD\uFFFD");
  EXPECT_EQ(value_of(R"(\ud800\ud83d\ude00)"), "\uFFFD\U0001F600");
  EXPECT_EQ(value_of(R"(\ude00\ud83d)"), "\uFFFD\uFFFD");
  EXPECT_EQ(value_of(R"(\ud800\u0041)"), "\uFFFDA");
  EXPECT_EQ(value_of(R"(\\ud800)"), R"(\ud800)");
  EXPECT_EQ(value_of(R"(\\\ud800\n)"), "\\\uFFFD\n");
  for (const char* const wrong : {R"(\u-800)", R"(\ud8)", R"(\u+800)", R"(\x)"})
    EXPECT_EQ(value_of(wrong), "none") << wrong;
}

TEST(Arguments, AreAnObject) {
  for (const char* const wrong : {"", "[1]", "7", "null", "\"{}\"", "{", R"({"a": "Rom)", "{} x",
                                  "\\", "\\u", "{\"a\": \"\\"})
    EXPECT_FALSE(arguments_of(wrong)) << wrong;
  EXPECT_EQ(json::serialize(*arguments_of(R"( {"b": 18446744073709551615, "a": [-1.5]} )")),
            R"({"b":18446744073709551615,"a":[-1.5E0]})");
}

}  // namespace
}  // namespace strata
