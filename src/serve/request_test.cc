// Requests of both dialects, before there is a model.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "grammar/grammar.h"
#include "serve/ollama_request.h"
#include "serve/openai_request.h"

namespace strata::serve {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Durations, AreThoseOfGoOrSeconds) {
  EXPECT_EQ(parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("1h30m"), milliseconds(5'400'000));
  EXPECT_EQ(parse_duration("300ms"), milliseconds(300));
  EXPECT_EQ(parse_duration("1.5s"), milliseconds(1500));
  EXPECT_EQ(parse_duration("90"), milliseconds(90'000));
  EXPECT_EQ(parse_duration("0"), milliseconds(0));
  EXPECT_EQ(parse_duration("-1"), milliseconds(-1));
  EXPECT_EQ(parse_duration("-5m"), milliseconds(-1));
  for (const char* const text : {"", "-", "m", "5x", "5m-", "1e99h", "nan", "inf", "5 m", "soon"})
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
}

OpenAiRequest chat(const std::string& members) {
  auto read = read_chat_request(R"({"messages": [{"role": "user", "content": "x"}])" +
                                (members.empty() ? "" : ", " + members) + "}");
  EXPECT_TRUE(read.ok()) << read.status().message;
  return read.ok() ? std::move(*read) : OpenAiRequest();
}
std::string chat_field(const std::string& members) {
  const auto read =
      read_chat_request(R"({"messages": [{"role": "user", "content": "x"}], )" + members + "}");
  EXPECT_FALSE(read.ok()) << members;
  return read.ok() ? "" : read.status().field;
}

TEST(OpenAiChat, ReadsWhatItIsAsked) {
  const OpenAiRequest request =
      chat(R"("model": "m", "stream": true, "stream_options": {"include_usage": true}, "n": 2,
              "stop": "x", "max_tokens": 5, "temperature": 0.5, "logprobs": true,
              "top_logprobs": 3, "user": "me", "cache_salt": "s", "priority": 4,
              "logit_bias": {"7": -100, "8": 2}, "ignore_eos": true)");
  ASSERT_THAT(request.generations, SizeIs(1));
  const Generation& generation = request.generations.front();
  EXPECT_TRUE(request.stream && request.include_usage && request.wants_logprobs);
  EXPECT_EQ(generation.model, "m");
  EXPECT_EQ(generation.choices, 2);
  EXPECT_THAT(generation.stops, ElementsAre("x"));
  EXPECT_EQ(generation.max_tokens, 5);
  EXPECT_EQ(generation.sampling.at("temperature"), 0.5);
  EXPECT_EQ(generation.top_logprobs, 3);
  EXPECT_EQ(generation.user, "me");
  EXPECT_EQ(generation.cache_salt, "s");
  EXPECT_EQ(generation.priority, -4);  // low numbers first, as in vLLM
  EXPECT_TRUE(generation.ignore_end);
  const std::vector<std::pair<TokenId, float>> bias = {{7, -std::numeric_limits<float>::infinity()},
                                                       {8, 2.0f}};
  EXPECT_EQ(generation.logit_bias, bias);
  EXPECT_THAT(generation.warnings, IsEmpty());
}

TEST(OpenAiChat, LetsRequestsGoBehindOthersButNotBefore) {
  const auto priority = [](const std::string& members) {
    return chat(members).generations.front().priority;
  };
  EXPECT_EQ(priority(R"("service_tier": "default")"), kInteractive);
  EXPECT_EQ(priority(R"("service_tier": "priority")"), kInteractive);
  EXPECT_EQ(priority(R"("priority": 0)"), kInteractive);
  EXPECT_EQ(priority(R"("priority": -7)"), kInteractive);
  EXPECT_THAT(chat(R"("priority": -7)").generations.front().warnings,
              ElementsAre(HasSubstr("`priority` counts as 0")));
  EXPECT_EQ(priority(R"("service_tier": "flex")"), kBackground);
  EXPECT_EQ(priority(R"("service_tier": "flex", "priority": -7)"), kBackground);
  EXPECT_EQ(priority(R"("service_tier": "flex", "priority": 4)"), -4);
  EXPECT_LT(kBackground, kInteractive);
  EXPECT_EQ(chat_field(R"("priority": 1.5)"), "priority");
}

TEST(OpenAiChat, PrefersTheNewNameOfTheLimit) {
  EXPECT_EQ(chat("").generations.front().max_tokens, -1);
  EXPECT_EQ(chat(R"("max_tokens": 5, "max_completion_tokens": 6)").generations.front().max_tokens,
            6);
  const auto warnings = [](const std::string& members) {
    return chat(members + R"("max_completion_tokens": 6)").generations.front().warnings;
  };
  EXPECT_THAT(warnings(""), IsEmpty());
  EXPECT_THAT(warnings(R"("max_tokens": 6, )"), IsEmpty());
  EXPECT_THAT(warnings(R"("max_tokens": 5, )"), ElementsAre(HasSubstr("`max_tokens`")));
}

TEST(OpenAiChat, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(chat_field(R"("n": 0)"), "n");
  EXPECT_EQ(chat_field(R"("stream_options": {"include_usage": 1})"),
            "stream_options.include_usage");
  EXPECT_EQ(chat_field(R"("response_format": {"type": "xml"})"), "response_format.type");
  EXPECT_EQ(chat_field(R"("tools": [5])"), "tools");
  EXPECT_EQ(chat_field(R"("tool_choice": "required")"), "tool_choice");
  EXPECT_EQ(chat_field(R"("tools": [{"function": {"name": "f"}}],
                          "tool_choice": {"function": {"name": "g"}})"),
            "tool_choice");
  EXPECT_EQ(
      chat_field(R"("grammar": "root ::= \"a\"", "response_format": {"type": "json_object"})"),
      "grammar");
  EXPECT_EQ(chat_field(R"("functions": [{}])"), "functions");
  EXPECT_EQ(read_chat_request("{}").status().field, "messages");
  EXPECT_EQ(read_chat_request(R"({"messages": []})").status().field, "messages");
}

TEST(OpenAiChat, ReadsToolsAndTheirChoice) {
  const std::string tools = R"("tools": [{"type": "function", "function": {"name": "f"}}])";
  const auto choice = [&](const std::string& more) {
    return chat(tools + more).generations.front().tool_choice;
  };
  EXPECT_EQ(choice("").mode, ToolChoice::Mode::kAuto);
  EXPECT_EQ(choice(R"(, "tool_choice": "none")").mode, ToolChoice::Mode::kNone);
  EXPECT_EQ(choice(R"(, "tool_choice": "required")").mode, ToolChoice::Mode::kRequired);
  const ToolChoice named = choice(R"(, "tool_choice": {"function": {"name": "f"}})");
  EXPECT_EQ(named.mode, ToolChoice::Mode::kRequired);
  EXPECT_EQ(named.name, "f");
  EXPECT_FALSE(
      chat(tools + R"(, "parallel_tool_calls": false)").generations.front().parallel_tools);
}

TEST(OpenAiChat, ReadsEveryFormOfTheChoiceOfTools) {
  const std::string tools = R"("tools": [{"function": {"name": "f"}}, {"function": {"name": "g"}},
                                         {"function": {"name": "h"}}], "tool_choice": )";
  const auto read = [&](const std::string& choice) {
    return chat(tools + choice).generations.front();
  };
  using Mode = ToolChoice::Mode;
  for (const auto& [choice, mode] : std::initializer_list<std::pair<const char*, Mode>>{
           {R"("any")", Mode::kRequired},
           {R"({"type": "required"})", Mode::kRequired},
           {R"({"type": "any"})", Mode::kRequired},
           {R"({"type": "auto"})", Mode::kAuto},
           {R"({"type": "none"})", Mode::kNone}}) {
    EXPECT_EQ(read(choice).tool_choice.mode, mode) << choice;
    EXPECT_EQ(read(choice).tool_choice.name, "") << choice;
    EXPECT_THAT(read(choice).warnings, IsEmpty()) << choice;
  }
  EXPECT_EQ(read(R"({"type": "function", "name": "g"})").tool_choice.name, "g");
  for (const char* const list : {R"({"type": "allowed_tools", "allowed_tools": {"mode": "required",
           "tools": [{"type": "function", "function": {"name": "h"}},
                     {"type": "function", "function": {"name": "f"}}]}})",
                                 R"({"type": "allowed_tools", "mode": "required", "tools": [
           {"type": "function", "name": "f"}, {"type": "function", "name": "h"}]})"}) {
    const Generation allowed = read(list);
    EXPECT_EQ(allowed.tool_choice.mode, Mode::kRequired);
    ASSERT_THAT(allowed.tools, SizeIs(2));
    EXPECT_EQ(allowed.tools[0].name + allowed.tools[1].name, "fh");
    // The model is told of all of them.
    EXPECT_THAT(allowed.tool_list.as_array(), SizeIs(3));
    EXPECT_THAT(allowed.warnings, IsEmpty());
  }
  for (const char* const wrong :
       {R"("maybe")", R"({"type": "maybe"})", "{}", "5", R"({"type": "function"})",
        R"({"type": "allowed_tools"})", R"({"type": "allowed_tools", "allowed_tools": 5})",
        R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}})",
        R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": ["f"]}})",
        R"({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"name": "x"}]}})",
        R"({"type": "allowed_tools", "allowed_tools": {"mode": "none", "tools": [{"name": "f"}]}})",
        R"({"type": "allowed_tools", "allowed_tools": {"tools": [{"name": "f"}]}})"})
    EXPECT_EQ(chat_field(tools + wrong), "tool_choice") << wrong;
}

TEST(OpenAiChat, ReadsWhatVllmHoldsAnswersTo) {
  const auto format = [](const std::string& members) {
    const Generation generation = chat(members).generations.front();
    EXPECT_THAT(generation.warnings, IsEmpty()) << members;
    return generation.format;
  };
  using Kind = OutputFormat::Kind;
  const boost::json::value schema{{"type", "integer"}};
  for (const std::string value : {R"({"type": "integer"})", R"("{\"type\": \"integer\"}")"}) {
    const OutputFormat guided = format(R"("guided_json": )" + value);
    EXPECT_EQ(guided.kind, Kind::kJsonSchema);
    EXPECT_EQ(guided.schema, schema);
    EXPECT_EQ(guided.field, "guided_json");
    const OutputFormat inner = format(R"("structured_outputs": {"json": )" + value + "}");
    EXPECT_EQ(inner.kind, Kind::kJsonSchema);
    EXPECT_EQ(inner.schema, schema);
    EXPECT_EQ(inner.field, "structured_outputs.json");
  }
  for (const char* const members : {R"("guided_grammar": "root ::= \"a\"")",
                                    R"("structured_outputs": {"grammar": "root ::= \"a\""})"}) {
    EXPECT_EQ(format(members).kind, Kind::kGrammar);
    EXPECT_EQ(format(members).grammar, "root ::= \"a\"");
  }
  const std::string choices = R"(["yes", "a \"b\" \\ [c]", "\n\u0001é", ""])";
  for (const std::string& members :
       {R"("guided_choice": )" + choices, R"("structured_outputs": {"choice": )" + choices + "}"}) {
    const OutputFormat guided = format(members);
    EXPECT_EQ(guided.kind, Kind::kGrammar);
    EXPECT_EQ(guided.grammar, R"(root ::= "yes" | "a \"b\" \\ [c]" | "\x0a\x01é" | "")");
    EXPECT_TRUE(parse_gbnf(guided.grammar).ok()) << guided.grammar;
  }
  EXPECT_EQ(format(R"("structured_outputs": {"json_object": true})").kind, Kind::kJsonObject);
  EXPECT_EQ(format(R"("structured_outputs": {}, "guided_regex": null, "guided_json": null,
                      "response_format": {"type": "text"})")
                .kind,
            Kind::kText);
}

TEST(OpenAiChat, RefusesWhatItCannotHoldAnswersTo) {
  for (const auto& [members, field] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"("guided_regex": "a+")", "guided_regex"},
           {R"("guided_json": "{")", "guided_json"},
           {R"("guided_choice": [])", "guided_choice"},
           {R"("guided_choice": [1])", "guided_choice"},
           {R"("guided_grammar": 5)", "guided_grammar"},
           {R"("structured_outputs": 5)", "structured_outputs"},
           {R"("structured_outputs": {"regex": "a+"})", "structured_outputs.regex"},
           {R"("structured_outputs": {"structural_tag": "{}"})",
            "structured_outputs.structural_tag"},
           {R"("guided_json": {}, "guided_choice": ["a"])", "guided_json"},
           {R"("guided_choice": ["a"], "structured_outputs": {"json": {}})", "guided_choice"},
           {R"("structured_outputs": {"json": {}, "json_object": true})",
            "structured_outputs.json"},
           {R"("guided_json": {}, "response_format": {"type": "json_object"})", "guided_json"}})
    EXPECT_EQ(chat_field(members), field) << members;
  EXPECT_THAT(
      chat(R"("structured_outputs": {"json": {}, "backend": "x"})").generations.front().warnings,
      ElementsAre(HasSubstr("`structured_outputs.backend`")));
}

TEST(OpenAiChat, ReadsThinking) {
  const auto think = [](const std::string& members) {
    return chat(members).generations.front().think;
  };
  EXPECT_EQ(think(""), std::nullopt);
  EXPECT_EQ(think(R"("think": false)"), false);
  EXPECT_EQ(think(R"("reasoning_effort": "none")"), false);
  EXPECT_EQ(think(R"("reasoning_effort": "high")"), true);
  EXPECT_EQ(chat(R"("reasoning_effort": "high", "chat_template_kwargs": {"a": 1})")
                .generations.front()
                .template_inputs,
            (boost::json::object{{"a", 1}, {"reasoning_effort", "high"}}));
}

TEST(OpenAiChat, KnowsWhichFieldAsksForThinking) {
  const auto field = [](const std::string& members) {
    return chat(members).generations.front().thinking_field;
  };
  EXPECT_EQ(field(""), "");
  EXPECT_EQ(field(R"("think": true)"), "think");
  EXPECT_EQ(field(R"("reasoning_effort": "low")"), "reasoning_effort");
  EXPECT_EQ(field(R"("chat_template_kwargs": {"enable_thinking": true})"),
            "chat_template_kwargs.enable_thinking");
  for (const char* const members :
       {R"("think": false)", R"("think": true, "reasoning_effort": "none")",
        R"("chat_template_kwargs": {"enable_thinking": false})",
        R"("chat_template_kwargs": {"enable_thinking": true}, "think": false)"})
    EXPECT_EQ(field(members), "") << members;
}

TEST(OpenAiChat, LimitsNamesAndStops) {
  const std::string most(1024, 'a');
  const auto quoted = [](const std::string& text) { return '"' + text + '"'; };
  for (const std::string name : {"model", "user", "cache_salt"}) {
    EXPECT_TRUE(chat(quoted(name) + ": " + quoted(most)).generations.size() == 1);
    EXPECT_EQ(chat_field(quoted(name) + ": " + quoted(most + "a")), name);
  }
  const auto stops = [&](int count, const std::string& more) {
    std::string list = quoted(more);
    for (int i = 0; i < count; ++i) list += ", " + quoted(most);
    return R"("stop": [)" + list + "]";
  };
  EXPECT_THAT(chat(stops(4, "")).generations.front().stops, SizeIs(4));
  EXPECT_EQ(chat_field(stops(4, "b")), "stop");
  EXPECT_EQ(chat_field(stops(0, most + "a")), "stop");
}

TEST(OpenAiChat, WarnsOfUnknownFields) {
  EXPECT_THAT(chat(R"("sparkle": 1, "metadata": {"a": "b"})").generations.front().warnings,
              ElementsAre(HasSubstr("`sparkle`")));
}

TEST(OpenAiChat, WarnsOfPenaltiesBeyondTheProtocolAndEmptyStops) {
  const auto read = read_chat_request(
      R"({"messages": [{"role": "user", "content": "x"}], "presence_penalty": 5,
          "frequency_penalty": -2, "stop": ["", "x"]})");
  ASSERT_TRUE(read.ok()) << read.status().message;
  const Generation& generation = read->generations.front();
  EXPECT_THAT(generation.stops, ElementsAre("x"));
  EXPECT_THAT(generation.warnings,
              ElementsAre(HasSubstr("`stop`"), HasSubstr("`presence_penalty`")));
}

TEST(OpenAiChat, NamesUnknownFieldsBelowTheFirstLevel) {
  const auto read = read_chat_request(
      R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "x", "cache": 1}]},
                       {"role": "assistant", "foo": 1, "tool_calls": [
                          {"function": {"name": "f", "arguments": "{}", "odd": 1}, "at": 2}]}],
          "stream_options": {"include_obfuscation": false},
          "tools": [{"function": {"name": "f", "glow": 1}, "spark": 2}],
          "tool_choice": {"function": {"name": "f", "mood": 1}},
          "response_format": {"type": "json_schema", "tint": 1,
                              "json_schema": {"schema": {"x-anything": 1}, "hue": 2}}})");
  ASSERT_TRUE(read.ok()) << read.status().message;
  std::string all;
  for (const std::string& warning : read->generations.front().warnings) all += warning + "\n";
  for (const char* const name :
       {"messages[0].content[0].cache", "messages[1].foo", "messages[1].tool_calls[0].function.odd",
        "messages[1].tool_calls[0].at", "stream_options.include_obfuscation",
        "tools[0].function.glow", "tools[0].spark", "tool_choice.function.mood",
        "response_format.tint", "response_format.json_schema.hue"})
    EXPECT_THAT(all, HasSubstr(std::string("`") + name + "`"));
  EXPECT_THAT(read->generations.front().warnings, SizeIs(10)) << all;
}

TEST(OpenAiChat, TakesBackWhatItAnswered) {
  EXPECT_THAT(read_chat_request(
                  R"({"messages": [{"role": "assistant", "content": "x", "refusal": null,
                            "annotations": [], "audio": null, "function_call": null,
                            "reasoning_content": "y", "tool_calls": [{"id": "c", "index": 0,
                            "type": "function", "function": {"name": "f", "arguments": ""}}]}]})")
                  ->generations.front()
                  .warnings,
              IsEmpty());
}

TEST(OpenAiChat, RefusesValuesThatItDoesNotKnow) {
  for (const auto& [members, field] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"("modalities": ["text", "audio"])", "modalities"},
           {R"("reasoning_effort": "extreme")", "reasoning_effort"},
           {R"("service_tier": "gold")", "service_tier"},
           {R"("verbosity": "loud")", "verbosity"},
           {R"("store": "yes")", "store"}})
    EXPECT_EQ(chat_field(members), field);
  const auto warnings = [](const std::string& members) {
    return chat(members).generations.front().warnings;
  };
  EXPECT_THAT(warnings(R"("modalities": ["text"], "service_tier": "auto", "verbosity": "medium",
                          "store": false, "reasoning_effort": "xhigh")"),
              IsEmpty());
  EXPECT_THAT(warnings(R"("service_tier": "scale")"), ElementsAre(HasSubstr("`service_tier`")));
  EXPECT_THAT(warnings(R"("verbosity": "low")"), ElementsAre(HasSubstr("`verbosity`")));
  EXPECT_THAT(warnings(R"("store": true)"), ElementsAre(HasSubstr("`store`")));
  for (const char* const name : {"audio", "function_call"})
    EXPECT_EQ(read_chat_request(std::string(R"({"messages": [{"role": "assistant", ")") + name +
                                R"(": {}}]})")
                  .status()
                  .field,
              "messages");
}

TEST(OpenAiChat, RefusesToolsWhoseSchemaIsNone) {
  const auto read = [](const std::string& schema) {
    return read_chat_request(
        R"({"messages": [{"role": "user", "content": "x"}],
            "tools": [{"function": {"name": "f"}}, {"function": {"name": "g", "parameters": )" +
        schema + "}}]}");
  };
  for (const char* const schema : {R"({"type": "nope"})", R"({"properties": {"a": "b"}})"}) {
    ASSERT_FALSE(read(schema).ok()) << schema;
    EXPECT_EQ(read(schema).status().field, "tools");
    EXPECT_THAT(read(schema).status().message, HasSubstr("tools[1].function.parameters, #"));
  }
  EXPECT_TRUE(read(R"({"properties": {"a": {"pattern": "(?<=x)y"}}})").ok());
  EXPECT_TRUE(read("{}").ok());
}

TEST(OpenAiCompletions, TakeTextTokensAndListsOfEither) {
  const auto read = [](const std::string& prompt) {
    auto request = read_completion_request(R"({"prompt": )" + prompt + "}");
    EXPECT_TRUE(request.ok()) << prompt;
    return request.ok() ? std::move(request->generations) : std::vector<Generation>();
  };
  EXPECT_EQ(read(R"("x")").front().text, "x");
  EXPECT_EQ(read(R"("x")").front().max_tokens, 16);
  EXPECT_THAT(read("[1, 2]").front().tokens, ElementsAre(1, 2));
  EXPECT_THAT(read(R"(["x", [1], "y"])"), SizeIs(3));
  for (const char* const prompt : {"5", "{}", "null", "[-1]", "[[-1]]", "[1.5]", "[4294967296]",
                                   R"(["x", 5])", R"([1, "x"])", "[[[1]]]"}) {
    const auto request = read_completion_request(std::string(R"({"prompt": )") + prompt + "}");
    ASSERT_FALSE(request.ok()) << prompt;
    EXPECT_EQ(request.status().field, "prompt") << prompt;
  }
}

TEST(OpenAiCompletions, ReportThePromptOnlyWhereAsked) {
  const auto read = read_completion_request(R"({"prompt": "x", "echo": true, "logprobs": 2})");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->generations.front().report_prompt);
  EXPECT_TRUE(read->generations.front().prompt_logprobs);
  const auto plain = read_completion_request(R"({"prompt": "x", "logprobs": 2})");
  EXPECT_FALSE(plain->generations.front().report_prompt);
}

TEST(OpenAiCompletions, LimitTheAnswersToAllPromptsTogether) {
  const auto read = [](int prompts, int n) {
    std::string list = R"("x")";
    for (int i = 1; i < prompts; ++i) list += R"(, "x")";
    return read_completion_request(fmt::format(R"({{"prompt": [{}], "n": {}}})", list, n));
  };
  EXPECT_TRUE(read(8, 128).ok());
  ASSERT_FALSE(read(9, 128).ok());
  EXPECT_EQ(read(9, 128).status().field, "n");
  EXPECT_TRUE(read(256, 4).ok());
  EXPECT_EQ(read(256, 5).status().field, "n");
}

TEST(OpenAiCompletions, LimitWhatIsCopiedForEveryPrompt) {
  const auto read = [](const std::string& prompt, std::size_t bytes) {
    for (const char* const field : {R"("grammar": ")", R"("temperature": ")"}) {
      const auto request = read_completion_request(R"({"prompt": )" + prompt + ", " + field +
                                                   std::string(bytes, 'a') + "\"}");
      if (!request.ok()) return request.status().field;
    }
    return std::string();
  };
  EXPECT_EQ(read(R"(["x", "y"])", (2 << 20) - 100), "");
  EXPECT_EQ(read(R"(["x", "y"])", 2 << 20), "grammar") << "the longest";
  EXPECT_EQ(read(R"("x")", 5 << 20), "");
  EXPECT_EQ(read("[5, 6]", 5 << 20), "");
  EXPECT_EQ(read("[[5], [6]]", 2 << 20), "grammar");
}

TEST(OpenAiCompletions, KnowTheTier) {
  const auto read = [](const std::string& tier) {
    return read_completion_request(R"({"prompt": "x", "service_tier": ")" + tier + R"("})");
  };
  EXPECT_EQ(read("flex")->generations.front().priority, kBackground);
  EXPECT_THAT(read("flex")->generations.front().warnings, IsEmpty());
  EXPECT_THAT(read("priority")->generations.front().warnings,
              ElementsAre(HasSubstr("`service_tier`")));
  EXPECT_EQ(read("gold").status().field, "service_tier");
}

OllamaRequest ollama(const std::string& body, bool is_chat = true) {
  auto read = is_chat ? read_ollama_chat(body) : read_ollama_generate(body);
  EXPECT_TRUE(read.ok()) << read.status().message;
  return read.ok() ? std::move(*read) : OllamaRequest();
}

TEST(OllamaChat, ReadsWhatItIsAsked) {
  const OllamaRequest request = ollama(
      R"({"model": "m", "messages": [{"role": "user", "content": "x"}], "keep_alive": "5m",
          "format": "json", "think": "high",
          "options": {"temperature": 0.5, "num_predict": -2, "stop": ["x"], "num_ctx": 4096}})");
  const Generation& generation = request.generation;
  EXPECT_TRUE(request.stream);
  EXPECT_FALSE(request.load_only);
  EXPECT_EQ(generation.keep_alive, milliseconds(300'000));
  EXPECT_EQ(generation.format.kind, OutputFormat::Kind::kJsonObject);
  EXPECT_EQ(generation.think, true);
  EXPECT_EQ(generation.max_tokens, -1);
  EXPECT_THAT(generation.stops, ElementsAre("x"));
  EXPECT_THAT(generation.warnings, ElementsAre(HasSubstr("options.num_ctx")));
}

TEST(OllamaChat, MayAskToGoBehindOthers) {
  const auto read = [](const std::string& priority) {
    return ollama(R"({"messages": [{"role": "user", "content": "x"}], "options": {"priority": )" +
                  priority + "}}");
  };
  EXPECT_EQ(read("1").generation.priority, kBackground);
  EXPECT_EQ(read("-1").generation.priority, kInteractive);
  EXPECT_THAT(read("-1").generation.warnings, ElementsAre(HasSubstr("`options.priority`")));
}

TEST(OllamaChat, OnlyLoadsWithoutMessages) {
  EXPECT_TRUE(ollama(R"({"model": "m"})").load_only);
  EXPECT_TRUE(ollama(R"({"model": "m", "messages": []})").load_only);
  const OllamaRequest unload = ollama(R"({"model": "m", "keep_alive": 0})");
  EXPECT_EQ(unload.generation.keep_alive, milliseconds(0));
  EXPECT_EQ(ollama(R"({"keep_alive": -1})").generation.keep_alive, milliseconds(-1));
}

TEST(OllamaGenerate, MakesMessagesUnlessRaw) {
  EXPECT_THAT(ollama(R"({"prompt": "x", "system": "s"})", false).generation.messages, SizeIs(2));
  const OllamaRequest raw = ollama(R"({"prompt": "x", "raw": true, "system": ""})", false);
  EXPECT_EQ(raw.generation.source, Generation::Source::kText);
  EXPECT_EQ(raw.generation.text, "x");
  EXPECT_TRUE(ollama("{}", false).load_only);
  EXPECT_EQ(read_ollama_generate(R"({"prompt": "x", "raw": true, "system": "s"})").status().field,
            "system");
}

TEST(OllamaChat, NamesUnknownFieldsBelowTheFirstLevel) {
  EXPECT_THAT(ollama(R"({"messages": [{"role": "user", "content": "x", "foo": 1}],
                         "options": {"glow": 1}, "tools": [{"function": {"name": "f"}, "at": 1}]})")
                  .generation.warnings,
              ElementsAre(HasSubstr("`options.glow`"), HasSubstr("`messages[0].foo`"),
                          HasSubstr("`tools[0].at`")));
}

TEST(OllamaChat, NamesTheFieldThatIsWrong) {
  const std::string long_stop = R"({"options": {"stop": ")" + std::string(1025, 'a') + R"("}})";
  for (const auto& [body, field] : std::initializer_list<std::pair<std::string, const char*>>{
           {R"({"options": {"top_k": 1, "num_predict": "x"}})", "options.num_predict"},
           {R"({"keep_alive": "soon"})", "keep_alive"},
           {long_stop, "options.stop"},
           {R"({"keep_alive": 1e300})", "keep_alive"},
           {R"({"format": 5})", "format"},
           {R"({"format": "xml"})", "format"},
           {R"({"think": 5})", "think"},
           {R"({"think": "maybe"})", "think"},
           {R"({"tools": [{"function": {"name": "f", "parameters": {"type": "nope"}}}]})", "tools"},
           {R"({"tools": {}})", "tools"},
           {R"({"messages": [5]})", "messages"},
           {R"({"template": "x"})", "template"}}) {
    const auto read = read_ollama_chat(body);
    ASSERT_FALSE(read.ok()) << body;
    EXPECT_EQ(read.status().field, field) << body;
  }
}

}  // namespace
}  // namespace strata::serve
