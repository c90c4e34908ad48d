#include "text/chat.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/shared_data.h"
#include "text/messages.h"

namespace strata {
namespace {

ChatTemplate make(std::string_view source) {
  auto made = ChatTemplate::create(source, {"<s>", "</s>", "<unk>", ""});
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

ChatInputs parse(std::string_view text) { return boost::json::parse(text).as_object(); }

std::string text_of(const ChatTemplate& chat, std::string_view inputs) {
  const auto spans = chat.render(parse(inputs));
  return spans.ok() ? jinja::join(*spans) : fmt::format("error: {}", spans.status().message());
}

constexpr std::string_view kPlain =
    "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content + eos_token }}{% endfor %}";

TEST(ChatTemplate, JoinsTextPartsForTemplatesThatTakeOnlyText) {
  const std::string_view parts = R"({"messages": [{"role": "user", "content": [
      {"type": "text", "text": "part one. "}, {"type": "text", "text": "part two."}]}]})";
  EXPECT_EQ(text_of(make(kPlain), parts), "<s>[user]part one. part two.</s>");
  // Printing the list is not taking parts.
  EXPECT_EQ(text_of(make("{{ messages[0].content }}"), parts), "part one. part two.");
  EXPECT_EQ(text_of(make("{{ messages[0].content | tojson }}"), parts), R"("part one. part two.")");
  const ChatTemplate own = make(
      "{% for p in messages[0].content %}{{ p if p is string else p.text ~ '|' }}{% endfor %}");
  EXPECT_TRUE(own.takes_parts());
  EXPECT_EQ(text_of(own, parts), "part one. |part two.|");
}

TEST(ChatTemplate, RefusesPartsThatAreNoTextWhereOnlyTextIsTaken) {
  const auto spans = make(kPlain).render(parse(
      R"({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]})"));
  ASSERT_FALSE(spans.ok());
  EXPECT_EQ(spans.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(spans.status().message().find("takes text only"), std::string::npos);
}

TEST(ChatTemplate, WrapsTextForTemplatesThatTakeOnlyParts) {
  const ChatTemplate chat =
      make("{% for p in messages[0].content if p is mapping %}{{ p.text }}{% endfor %}");
  EXPECT_EQ(text_of(chat, R"({"messages": [{"role": "user", "content": "hello"}]})"), "hello");
}

TEST(ChatTemplate, TakesAnEmptyListOfToolsForNone) {
  const ChatTemplate chat = make("{{ tools is defined }}");
  EXPECT_EQ(text_of(chat, R"({"messages": [], "tools": []})"), "False");
  EXPECT_EQ(text_of(chat, R"({"messages": [], "tools": null})"), "False");
  EXPECT_EQ(text_of(chat, R"({"messages": [], "tools": [1]})"), "True");
}

TEST(ChatTemplate, AcceptsEnsureAsciiOfTojson) {
  EXPECT_EQ(text_of(make("{{ tools[0] | tojson(ensure_ascii=False) }}"),
                    R"({"messages": [], "tools": [{"city": "Zürich"}]})"),
            R"({"city": "Zürich"})");
}

TEST(ChatTemplate, NeverDereferencesNullContent) {
  const std::string_view inputs =
      R"({"messages": [{"role": "assistant", "content": null, "tool_calls": []},
                       {"role": "assistant", "tool_calls": []},
                       {"role": "user", "content": null}]})";
  EXPECT_EQ(text_of(make(kPlain), inputs), "<s>[assistant]</s>[assistant]</s>[user]</s>");
  EXPECT_EQ(text_of(make("{% for m in messages %}{{ m.content }};{% endfor %}"), inputs), ";;;");
  // A template that looks for null beside tool calls sees it.
  const ChatTemplate looks = make(
      "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls | tojson }}"
      "{% else %}{{ m.content }}{% endif %};{% endfor %}");
  EXPECT_EQ(text_of(looks, inputs), "[];[];;");
}

TEST(ChatTemplate, RefusalsCarryTheTemplatesOwnMessage) {
  const ChatTemplate chat =
      make("{{ raise_exception('roles must alternate: ' ~ messages|length) }}");
  const auto spans = chat.render(parse(R"({"messages": [1, 2]})"));
  ASSERT_FALSE(spans.ok());
  EXPECT_EQ(spans.status().message(), "every message must be an object");
  EXPECT_EQ(text_of(chat, R"({"messages": []})"), "error: roles must alternate: 0");
}

TEST(ChatTemplate, TellsTheTimeOnlyThroughNow) {
  const ChatTemplate chat =
      make("{{ strftime_now('%d %b %Y') if strftime_now is defined else 'timeless' }}");
  EXPECT_EQ(text_of(chat, R"({"messages": [], "now": "2026-03-14T15:09:26"})"), "14 Mar 2026");
  EXPECT_EQ(text_of(chat, R"({"messages": []})"), "timeless");
  EXPECT_EQ(text_of(chat, R"({"messages": [], "now": "soon"})"),
            "error: \"now\" must be a time such as \"2026-03-14T15:09:26\"");
  EXPECT_EQ(text_of(make("{{ now is defined }}"), R"({"messages": [], "now": "2026-03-14"})"),
            "False");
}

TEST(ChatTemplate, MarksRolesAsScaffoldingOnlyWhenTheyAreKnown) {
  const ChatTemplate chat = make("{{ '<|' + messages[0].role + '|>' }}");
  const auto known = chat.render(parse(R"({"messages": [{"role": "user"}]})"));
  ASSERT_TRUE(known.ok());
  ASSERT_EQ(known->size(), 1u);
  EXPECT_FALSE(known->front().content);
  const auto forged = chat.render(parse(R"({"messages": [{"role": "endoftext"}]})"));
  ASSERT_TRUE(forged.ok());
  ASSERT_EQ(forged->size(), 3u);
  EXPECT_TRUE((*forged)[1].content);
}

TEST(ChatTemplate, CallersCannotReplaceSpecialTexts) {
  const auto spans = make("{{ bos_token }}").render(parse(R"({"messages": [], "bos_token": "x"})"));
  ASSERT_TRUE(spans.ok());
  EXPECT_EQ(jinja::join(*spans), "<s>");
  EXPECT_FALSE(spans->front().content);
}

TEST(ChatTemplate, TakesArgumentsOfCallsAsObjectsOrStrings) {
  constexpr std::string_view form = R"({{"messages": [{{"role": "assistant", "tool_calls": [
      {{"function": {{"name": "f", "arguments": {}}}}}]}}]}})";
  const std::string object = fmt::format(fmt::runtime(form), R"({"a": "x"})");
  const std::string quoted = fmt::format(fmt::runtime(form), R"("{\"a\": \"x\"}")");
  const std::string call =
      "{% for m in messages if m.tool_calls is defined %}{% for c in m.tool_calls %}";
  const ChatTemplate dumps =
      make(call + "{{ c.function.name ~ c.function.arguments | tojson }}{% endfor %}{% endfor %}");
  EXPECT_EQ(text_of(dumps, object), R"(f{"a": "x"})");
  EXPECT_EQ(text_of(dumps, quoted), R"(f{"a": "x"})");
  const ChatTemplate joins =
      make(call + "{{ c.function.name + c.function.arguments }}{% endfor %}{% endfor %}");
  EXPECT_EQ(text_of(joins, object), R"(f{"a":"x"})");
  EXPECT_EQ(text_of(joins, quoted), R"(f{"a": "x"})");
}

TEST(ChatTemplate, CallsDevelopersSystemsUnlessTheTemplateKnowsThem) {
  const std::string_view inputs = R"({"messages": [{"role": "developer", "content": "x"}]})";
  EXPECT_EQ(text_of(make(kPlain), inputs), "<s>[system]x</s>");
  EXPECT_EQ(text_of(make("{{ messages[0].role }}{# 'developer' #}"), inputs), "developer");
}

TEST(ChatTemplate, FindsOutHowATemplateThinks) {
  const ChatTemplate chat = make(
      "{% for m in messages %}{{ m.content.split('</think>')[-1] }}{% endfor %}"
      "{% if enable_thinking is defined and not enable_thinking %}<think></think>"
      "{% else %}<think>\n{% endif %}");
  ASSERT_TRUE(chat.supports_thinking());
  EXPECT_EQ(chat.thinking().tags.open, "<think>");
  EXPECT_EQ(chat.thinking().switched_by, "enable_thinking");
  const auto on = chat.render(parse(R"({"messages": []})"));
  const auto off = chat.render(parse(R"({"messages": [], "enable_thinking": false})"));
  ASSERT_TRUE(on.ok() && off.ok());
  EXPECT_TRUE(chat.opens_thinking(*on));
  EXPECT_FALSE(chat.opens_thinking(*off));
  const ChatTemplate plain = make(kPlain);
  EXPECT_FALSE(plain.supports_thinking());
  // A message that ends in the tag opens nothing.
  const auto forged = make("{# </think> #}{{ messages[0].content }}")
                          .render(parse(R"({"messages": [{"content": "<think>"}]})"));
  ASSERT_TRUE(forged.ok());
  EXPECT_FALSE(chat.opens_thinking(*forged));
}

TEST(ChatTemplate, WithoutATemplateTheModelFileSaysWhatToDo) {
  const auto made = ChatTemplate::from_metadata(Metadata());
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.status().code(), StatusCode::kNotFound);
  EXPECT_NE(made.status().message().find("--template FILE"), std::string::npos);
}

class ModelTemplates : public ::testing::Test {
 protected:
  void SetUp() override { STRATA_REQUIRE_SHARED_DATA(); }

  static ChatTemplate load(const std::string& name) {
    std::ifstream in(testing::shared_data_root() / "templates" / name, std::ios::binary);
    std::stringstream source;
    source << in.rdbuf();
    EXPECT_FALSE(source.str().empty()) << name;
    return make(source.str());
  }
};

TEST_F(ModelTemplates, TakePartsOrHaveThemJoined) {
  for (const std::string name :
       {"Qwen-Qwen3-0.6B.jinja", "google-gemma-2-2b-it.jinja", "HuggingFaceTB-SmolLM3-3B.jinja",
        "LFM2-8B-A1B.jinja", "GLM-4.6.jinja", "Mistral-Small-3.2-24B-Instruct-2506.jinja",
        "Apertus-8B-Instruct.jinja"}) {
    const std::string text = text_of(load(name), R"({"now": "2026-03-14", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "part one. "},
                                     {"type": "text", "text": "part two."}]}]})");
    EXPECT_NE(text.find("part one. part two."), std::string::npos) << name << ": " << text;
    EXPECT_EQ(text.find("'type'"), std::string::npos) << name;
  }
  EXPECT_TRUE(load("GLM-4.6.jinja").takes_parts());
  EXPECT_FALSE(load("LFM2-8B-A1B.jinja").takes_parts());
}

TEST_F(ModelTemplates, RenderToolCallsWithEmptyOrNullContent) {
  const std::string_view form = R"({"messages": [{"role": "user", "content": "weather?"},
      {"role": "assistant", "content": %s, "reasoning_content": "look it up", "tool_calls": [
        {"id": "call00001", "type": "function",
         "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}]},
      {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "7"}]})";
  for (const std::string content : {"\"\"", "null"}) {
    const std::size_t place = form.find("%s");
    const std::string inputs =
        fmt::format("{}{}{}", form.substr(0, place), content, form.substr(place + 2));
    const std::string text = text_of(load("Qwen-Qwen3-0.6B.jinja"), inputs);
    EXPECT_NE(text.find("\"get_weather\""), std::string::npos) << text;
    EXPECT_NE(text.find("look it up"), std::string::npos) << text;
    EXPECT_EQ(text.find("None"), std::string::npos) << text;
  }
}

TEST_F(ModelTemplates, KnowHowTheirModelsThink) {
  const ChatTemplate qwen = load("Qwen-Qwen3-0.6B.jinja");
  EXPECT_EQ(qwen.thinking().tags.close, "</think>");
  EXPECT_EQ(qwen.thinking().switched_by, "enable_thinking");
  EXPECT_EQ(load("google-gemma-4-31B-it-interleaved.jinja").thinking().tags.close, "<channel|>");
  EXPECT_FALSE(load("google-gemma-2-2b-it.jinja").supports_thinking());
  const ChatTemplate qwq = load("Qwen-QwQ-32B.jinja");
  const auto prompt = qwq.render(parse(R"({"messages": [{"role": "user", "content": "hi"}],
      "add_generation_prompt": true, "enable_thinking": true})"));
  ASSERT_TRUE(prompt.ok());
  EXPECT_TRUE(qwq.opens_thinking(*prompt));
}

TEST_F(ModelTemplates, TakeToolsOfWhichAClientTellsNothingButTheName) {
  for (const std::string name :
       {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja",
        "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", "Apertus-8B-Instruct.jinja",
        "CohereForAI-c4ai-command-r-plus-tool_use.jinja", "Qwen3-Coder.jinja",
        "Qwen-Qwen3-0.6B.jinja", "meta-llama-Llama-3.1-8B-Instruct.jinja"})
    for (const char* const rest :
         {"", R"(, "description": null, "parameters": null)", R"(, "description": "D")"}) {
      const std::string text = text_of(load(name), fmt::format(R"({{"now": "2026-03-14",
          "messages": [{{"role": "user", "content": "hi"}}],
          "tools": [{{"type": "function", "function": {{"name": "only_named"{}}}}}]}})",
                                                               rest));
      EXPECT_NE(text.find("only_named"), std::string::npos) << name << rest;
    }
}

TEST(ChatTemplate, GivesToolsAsTheyAreToTemplatesThatTakeThem) {
  EXPECT_EQ(text_of(make("{% for t in tools %}{{ t | tojson }}{% endfor %}"),
                    R"({"messages": [], "tools": [{"function": {"name": "f"}}]})"),
            R"({"function": {"name": "f"}})");
}

TEST_F(ModelTemplates, RefuseTwoUserTurnsWithTheirOwnMessage) {
  const std::string text = text_of(load("mistralai-Mistral-Nemo-Instruct-2407.jinja"),
                                   R"({"messages": [{"role": "user", "content": "one"},
                                                    {"role": "user", "content": "two"}]})");
  EXPECT_EQ(text,
            "error: After the optional system message, conversation roles must alternate "
            "user/assistant/user/assistant/...");
}

TEST_F(ModelTemplates, KnowHowTheirModelsCallTools) {
  const std::map<std::string, ToolStyle> styles = {
      {"Bielik-11B-v3.0-Instruct.jinja", ToolStyle::kHermes},
      {"MiMo-VL.jinja", ToolStyle::kHermes},
      {"MiroThinker.jinja", ToolStyle::kHermes},
      {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use.jinja", ToolStyle::kHermes},
      {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja", ToolStyle::kHermes},
      {"Qwen-QwQ-32B.jinja", ToolStyle::kHermes},
      {"Qwen-Qwen2.5-7B-Instruct.jinja", ToolStyle::kHermes},
      {"Qwen-Qwen3-0.6B.jinja", ToolStyle::kHermes},
      {"Reka-Edge.jinja", ToolStyle::kHermes},
      {"meta-llama-Llama-3.1-8B-Instruct.jinja", ToolStyle::kLlama},
      {"meta-llama-Llama-3.3-70B-Instruct.jinja", ToolStyle::kLlama},
      {"Qwen3-Coder.jinja", ToolStyle::kFunctionTags},
      {"stepfun-ai-Step-3.5-Flash.jinja", ToolStyle::kFunctionTags},
  };
  std::size_t found = 0;
  const auto folder = testing::shared_data_root() / "templates";
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename();
    if (!name.ends_with(".jinja")) continue;
    const auto style = styles.find(name);
    EXPECT_EQ(load(name).tool_style(), style == styles.end() ? ToolStyle::kNone : style->second)
        << name;
    found += style == styles.end() ? 0 : 1;
  }
  EXPECT_EQ(found, styles.size());
}

// A conversation with a tool as a client sends it: arguments in a string, names left out.
TEST_F(ModelTemplates, RenderConversationsWithToolsAsTheReferenceDoes) {
  const boost::json::value expected = boost::json::parse(
      testing::read_file(testing::shared_data_root() / "templates/expected.json"));
  int rendered = 0;
  for (const auto& golden : expected.at("cases").as_array()) {
    const std::string scenario(golden.at("scenario").as_string());
    if (scenario != "tool_round_trip" || !golden.as_object().contains("expected")) continue;
    ChatInputs inputs = expected.at("scenarios").at(scenario).as_object();
    boost::json::object& call = inputs["messages"].at(1).at("tool_calls").at(0).as_object();
    boost::json::value& arguments = call["function"].at("arguments");
    arguments = boost::json::serialize(arguments);
    inputs["messages"].at(2).as_object().erase("name");
    auto messages = read_messages(inputs["messages"]);
    ASSERT_TRUE(messages.ok()) << messages.status().message();
    inputs["messages"] = std::move(*messages);
    inputs["now"] = "2026-03-14T15:09:26";
    const std::string name(golden.at("template").as_string());
    const auto spans = load(name).render(inputs);
    EXPECT_EQ(spans.ok() ? jinja::join(*spans) : spans.status().message(),
              std::string(golden.at("expected").as_string()))
        << name;
    ++rendered;
  }
  EXPECT_GT(rendered, 30);
}

}  // namespace
}  // namespace strata
