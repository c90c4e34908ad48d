#include "serve/output_constraint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "gguf/gguf_file.h"
#include "gguf/writer.h"
#include "tests/shared_data.h"
#include "text/tool_call_parser.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kTurns = "{% for m in messages %}<|bos|>{{ m.role }}\n{{ m.content }}";
constexpr std::string_view kEnd =
    "<|eos|>\n{% endfor %}{% if add_generation_prompt %}<|bos|>assistant\n{% endif %}";
constexpr std::string_view kHermesCalls =
    "{% for c in m.tool_calls or [] %}<tool_call>\n{\"name\": \"{{ c.function.name }}\", "
    "\"arguments\": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}";
constexpr std::string_view kLlamaCalls =
    "{% for c in m.tool_calls or [] %}<|end_header_id|>{\"name\": \"{{ c.function.name }}\", "
    "\"parameters\": {{ c.function.arguments | tojson }}}{% endfor %}";
constexpr std::string_view kTaggedCalls =
    "{% for c in m.tool_calls or [] %}<tool_call>\n<function={{ c.function.name }}>\n"
    "{% for k, v in c.function.arguments | items %}<parameter={{ k }}>\n{{ v }}\n</parameter>\n"
    "{% endfor %}</function>\n</tool_call>{% endfor %}";
constexpr std::string_view kThinking = "{% if false %}<think></think>{% endif %}";

// The reference model with another chat template.
std::unique_ptr<ServedModel> model_with(std::string_view chat_template,
                                        const Reserve& reserve = Reserve(kGiB)) {
  const std::string source = strata::testing::reference_path("llama") + ".gguf";
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / fmt::format("served-{}.gguf", getpid()))
          .string();
  const auto file = GgufFile::open(source);
  const auto bytes = File::open(source);
  EXPECT_TRUE(file.ok() && bytes.ok());
  GgufWriter writer;
  for (const std::string_view key : file->metadata().keys())
    if (key != "tokenizer.chat_template") writer.add(key, *file->metadata().find(key));
  writer.add("tokenizer.chat_template", chat_template);
  std::vector<std::vector<std::uint8_t>> tensors;
  for (const TensorInfo& info : file->tensors()) {
    tensors.emplace_back(info.bytes);
    EXPECT_TRUE(bytes->read_exactly(info.offset, tensors.back()).ok());
    const auto shape = std::span(info.shape).first(info.dimensions);
    writer.add_tensor(info.name, info.format, shape, tensors.back());
  }
  EXPECT_TRUE(writer.write(path).ok());
  EngineOptions options;
  options.memory = kGiB;  // sanitizers take some of it
  options.context = 256;
  options.threads = 1;
  auto model = ServedModel::load({.name = "m", .path = path}, options, reserve,
                                 [](const Metadata&, std::int32_t) { return SamplingDefaults(); });
  std::filesystem::remove(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return model.ok() ? std::move(*model) : nullptr;
}

class OutputConstraint : public ::testing::Test {
 protected:
  void SetUp() override { STRATA_REQUIRE_REFERENCE("llama"); }

  void use(std::string_view calls, std::string_view more = {}) {
    model_ = model_with(fmt::format("{}{}{}{}", more, kTurns, calls, kEnd));
    ASSERT_NE(model_, nullptr);
  }
  static Generation asking(std::string_view tools = {}) {
    Generation generation;
    generation.messages = {json::object{{"role", "user"}, {"content", "x"}}};
    if (tools.empty()) return generation;
    generation.tool_list = json::parse({tools.data(), tools.size()});
    generation.tools = *read_tools(generation.tool_list);
    return generation;
  }
  static Generation requiring(std::string_view tools, std::string name = {}) {
    Generation generation = asking(tools);
    generation.tool_choice = {ToolChoice::Mode::kRequired, std::move(name)};
    return generation;
  }
  Answer<std::shared_ptr<const Constraint>> made(const Generation& generation,
                                                 bool starts_thinking = false) {
    warnings_.clear();
    return constraint_of(*model_, generation, starts_thinking, warnings_);
  }
  // How far an answer may go so, by the tokens of its bytes, and whether it may end then.
  std::string way(const Generation& generation, std::string_view text,
                  bool starts_thinking = false) {
    const auto constraint = made(generation, starts_thinking);
    EXPECT_TRUE(constraint.ok()) << constraint.status().message;
    if (!constraint.ok() || *constraint == nullptr) return "free";
    const auto one = (*constraint)->clone();
    const auto tokens = model_->tokenizer().encode(text, false, {});
    std::string taken;
    for (const TokenId token : *tokens) {
      if (!is_allowed(*one, token)) return taken;
      one->advance(token);
      taken += model_->tokenizer().token_bytes(token);
    }
    return taken + (is_allowed(*one, model_->end_tokens().front()) ? "." : "...");
  }
  static bool is_allowed(Constraint& constraint, TokenId token) {
    const auto mask = constraint.allowed();
    EXPECT_TRUE(mask.ok()) << mask.status().message();
    const auto index = static_cast<std::size_t>(token);
    return mask.ok() && (mask->empty() || ((*mask)[index / 64] >> (index % 64) & 1) != 0);
  }

  std::unique_ptr<ServedModel> model_;
  std::vector<std::string> warnings_;
};

constexpr std::string_view kTools = R"([
    {"function": {"name": "f", "parameters": {"type": "object", "properties":
        {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city", "days"],
        "additionalProperties": false}}},
    {"function": {"name": "g"}}])";

TEST_F(OutputConstraint, IsNoneWhereNothingIsAskedFor) {
  use(kHermesCalls);
  EXPECT_EQ(way(asking(), "x"), "free");
  Generation none = asking(kTools);
  none.tool_choice.mode = ToolChoice::Mode::kNone;
  EXPECT_EQ(way(none, "x"), "free");
}

TEST_F(OutputConstraint, HoldsTheAnswerToItsFormat) {
  use(kHermesCalls);
  Generation generation = asking();
  generation.format = {OutputFormat::Kind::kJsonObject, {}, {}, "format"};
  EXPECT_EQ(way(generation, "{}"), "{}.");
  EXPECT_EQ(way(generation, "x"), "");
  generation.format = {
      OutputFormat::Kind::kJsonSchema, json::parse(R"({"enum": [1, "a"]})"), {}, "format"};
  EXPECT_EQ(way(generation, "\"a\""), "\"a\".");
  EXPECT_EQ(way(generation, "2"), "");
  generation.format = {OutputFormat::Kind::kGrammar, {}, "root ::= \"ab\"", "grammar"};
  EXPECT_EQ(way(generation, "ab"), "ab.");
  generation.format.grammar = "root ::= (";
  EXPECT_EQ(made(generation).status().field, "grammar");
  generation.format = {
      OutputFormat::Kind::kJsonSchema, json::parse(R"({"enum": []})"), {}, "response_format"};
  EXPECT_EQ(made(generation).status().http_status, 400);
  EXPECT_THAT(made(generation).status().message, HasSubstr("`response_format`: the schema, #"));
}

TEST_F(OutputConstraint, GrammarsHaveSoMuchMemoryTogether) {
  const Reserve reserve(kMiB);
  model_ = model_with(fmt::format("{}{}", kTurns, kEnd), reserve);
  ASSERT_NE(model_, nullptr);
  int made = 0;
  const auto masks = [&] {
    return model_->masks(fmt::format("key {}", made++), [&] {
      return parse_gbnf(fmt::format(R"(root ::= "{}" [a-z]{{1,40}})", std::string(500, 'a')));
    });
  };
  for (int i = 0; i < 100; ++i) {
    const auto one = masks();
    ASSERT_TRUE(one.ok() && *one) << "those that no answer uses give way";
  }
  std::vector<std::shared_ptr<TokenMasks>> in_use;
  Bytes held = 0;
  for (auto one = masks(); one.ok() && *one; one = masks()) {
    held += (*one)->bytes();
    ASSERT_LE(held, reserve.grammars());
    in_use.push_back(*one);
  }
  EXPECT_GT(in_use.size(), 16u);
  Generation generation = asking();
  generation.format = {OutputFormat::Kind::kJsonObject, {}, {}, "format"};
  EXPECT_TRUE(this->made(generation).status().is_overload());
  in_use.clear();
  EXPECT_TRUE(this->made(generation).ok());

  const auto large = model_->masks("large", [] {
    return parse_gbnf(fmt::format(R"(root ::= "{}")", std::string(200'000, 'a')));
  });
  EXPECT_EQ(large.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(large.status().message(), HasSubstr("of 1.0 MiB that there are for grammars"));
}

TEST_F(OutputConstraint, IsCountedInThePlan) {
  const Reserve reserve(kGiB);
  use(kHermesCalls);
  const auto owners = model_->engine().memory_by_owner();
  EXPECT_EQ(owners.at("requests"), reserve.requests());
  EXPECT_GT(owners.at("grammars"), reserve.grammars());
  Bytes sum = 0;
  for (const auto& [owner, bytes] : owners) sum += bytes;
  EXPECT_EQ(sum, model_->engine().plan().total());
  EXPECT_THAT(describe(model_->engine().plan()), HasSubstr(", requests 96.0 MiB"));
  EXPECT_GE(model_->memory(), owners.at("grammars") + owners.at("weights"));
}

TEST_F(OutputConstraint, HoldsRequiredCallsToTheStyleOfTheTemplate) {
  struct Style {
    std::string_view calls, first, second, separator;
  };
  for (const Style& style :
       {Style{kHermesCalls,
              "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"city\": \"Rome\", \"days\": 3}}\n"
              "</tool_call>",
              "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>", "\n"},
        Style{kLlamaCalls, "{\"name\": \"f\", \"parameters\": {\"city\": \"Rome\", \"days\": 3}}",
              "{\"name\": \"g\", \"parameters\": {}}", ""},
        Style{kTaggedCalls,
              "<tool_call>\n<function=f>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3"
              "\n</parameter>\n</function>\n</tool_call>",
              "<tool_call>\n<function=g>\n</function>\n</tool_call>", "\n"}}) {
    use(style.calls);
    const auto whole = [](std::string_view text) { return fmt::format("{}.", text); };
    EXPECT_EQ(way(requiring(kTools), style.first), whole(style.first));
    EXPECT_EQ(way(requiring(kTools), style.second), whole(style.second));
    EXPECT_EQ(way(requiring(kTools, "g"), style.second), whole(style.second));
    EXPECT_NE(way(requiring(kTools, "g"), style.first), whole(style.first));
    EXPECT_EQ(way(requiring(kTools), "Sure"), "");
    const std::string both = fmt::format("{}{}{}", style.first, style.separator, style.second);
    const bool repeats = !style.separator.empty();
    EXPECT_EQ(way(requiring(kTools), both) == whole(both), repeats) << style.calls;
    Generation one = requiring(kTools);
    one.parallel_tools = false;
    EXPECT_NE(way(one, both), whole(both));
  }
}

TEST_F(OutputConstraint, ArgumentsAreObjectsWhateverTheSchemaSays) {
  const auto tools = [](std::string_view parameters, std::string_view strict = "null") {
    return fmt::format(R"([{{"function": {{"name": "f", "parameters": {}, "strict": {}}}}}])",
                       parameters, strict);
  };
  for (const std::string_view style : {kHermesCalls, kLlamaCalls}) {
    use(style);
    const std::string call = style == kHermesCalls
                                 ? "<tool_call>\n{\"name\": \"f\", \"arguments\": "
                                 : "{\"name\": \"f\", \"parameters\": ";
    for (const char* const schema : {R"({"title": "x"})", R"({"type": ["object", "null"]})",
                                     R"({"anyOf": [{"type": "object"}, {"type": "string"}]})"}) {
      EXPECT_EQ(way(requiring(tools(schema)), call + "{}"), call + "{}...") << schema;
      for (const char* const other : {"true", "null", "\"", "1"})
        EXPECT_FALSE(way(requiring(tools(schema)), call + other).starts_with(call + other));
    }
  }
  for (const std::string_view style : {kHermesCalls, kLlamaCalls, kTaggedCalls}) {
    use(style);
    const std::string none = R"({"type": "string"})";
    EXPECT_EQ(made(requiring(tools(none, "true"))).status().http_status, 400);
    EXPECT_EQ(made(requiring(tools(none, "true"))).status().field, "tools");
    EXPECT_TRUE(made(requiring(tools(none))).ok());
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the tool f, #: no object fits")));
    EXPECT_TRUE(made(asking(tools(none))).ok());
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the tool f, #: no object fits")));
  }
}

TEST_F(OutputConstraint, RefusesStrictCallsThatCannotBeWritten) {
  use(kTaggedCalls);
  const auto tools = [](std::string_view strict) {
    return fmt::format(R"([{{"function": {{"name": "f", "strict": {}, "parameters": {{
        "type": "object", "properties": {{"a>b": {{"type": "null"}}}}, "required": ["a>b"]}}}}}}])",
                       strict);
  };
  EXPECT_EQ(made(requiring(tools("true"))).status().http_status, 400);
  EXPECT_EQ(made(requiring(tools("true"))).status().field, "tools");
  for (const Generation& loose : {requiring(tools("false")), asking(tools("false"))}) {
    EXPECT_TRUE(made(loose).ok());
    EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the name of \"a>b\"")));
  }
}

TEST_F(OutputConstraint, HoldsBareValuesToTheTextsOfTheirList) {
  use(kTaggedCalls);
  const auto tools = [](std::string_view city) {
    return fmt::format(R"([{{"function": {{"name": "f", "parameters": {{"type": "object",
        "properties": {{"city": {}}}, "required": ["city"]}}}}}}])",
                       city);
  };
  const auto call = [](std::string_view city) {
    return fmt::format(
        "<tool_call>\n<function=f>\n<parameter=city>\n{}\n</parameter>\n"
        "</function>\n</tool_call>",
        city);
  };
  for (const char* const schema : {R"({"enum": ["Rome", "Pa"]})", R"({"const": "Rome"})"}) {
    EXPECT_EQ(way(requiring(tools(schema)), call("Rome")), call("Rome") + ".");
    EXPECT_NE(way(requiring(tools(schema)), call("Paris")), call("Paris") + ".");
  }
  EXPECT_THAT(warnings_, IsEmpty());
  const Generation loose = requiring(tools(R"({"type": "string", "maxLength": 2})"));
  EXPECT_EQ(way(loose, call("Rome")), call("Rome") + ".");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the tool f are not held to the `maxLength`")));
}

TEST_F(OutputConstraint, LeavesCallsFreeToComeButNotFreeInForm) {
  use(kHermesCalls);
  const Generation free = asking(kTools);
  EXPECT_EQ(way(free, "Sure. <tool_call>\n{\"name\": \"g\""),
            "Sure. <tool_call>\n{\"name\": \"g\"...");
  EXPECT_THAT(way(free, "Sure. <tool_call>\n{\"name\": \"h\""), ::testing::Not(HasSubstr("\"h")));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(OutputConstraint, LetsGoOnlyTheToolWhoseSchemaCannotBeHeld) {
  const auto tools = [](std::string_view parameters, std::string_view strict = "false") {
    return fmt::format(R"([{{"function": {{"name": "odd", "strict": {}, "parameters": {}}}}},
        {{"function": {{"name": "f", "parameters": {{"properties": {{"n": {{"type": "integer"}}}},
                        "required": ["n"], "additionalProperties": false}}}}}}])",
                       strict, parameters);
  };
  const auto call = [](std::string_view name, std::string_view arguments) {
    return fmt::format("<tool_call>\n{{\"name\": \"{}\", \"arguments\": {}}}\n</tool_call>", name,
                       arguments);
  };
  use(kHermesCalls);
  const std::string any = call("odd", R"({"x": [1]})"), good = call("f", R"({"n": 1})"),
                    bad = call("f", R"({"n": "a"})");
  for (const char* const odd :
       {R"({"properties": {"a": {"not": {}}}})", R"({"type": "object", "minProperties": 2})",
        R"({"properties": {"a": {"$ref": "#"}}, "required": ["a"]})"}) {
    for (const bool required : {false, true}) {
      const Generation loose = required ? requiring(tools(odd)) : asking(tools(odd));
      EXPECT_EQ(way(loose, any), any + ".") << odd;
      EXPECT_EQ(way(loose, good), good + ".") << odd;
      EXPECT_NE(way(loose, bad), bad + ".") << odd;
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the tool odd are not held to its schema")));
      const auto strict =
          made(required ? requiring(tools(odd, "true")) : asking(tools(odd, "true")));
      ASSERT_FALSE(strict.ok()) << odd;
      EXPECT_EQ(strict.status().field, "tools");
    }
  }
  const std::string pattern = R"x({"properties": {"a": {"type": "string", "pattern": "(?=x)"}}})x";
  EXPECT_EQ(way(asking(tools(pattern)), call("odd", R"({"a": "b"})")),
            call("odd", R"({"a": "b"})") + ".");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the tool odd, #/properties/a/pattern: answers")));
  EXPECT_FALSE(made(asking(tools(pattern, "true"))).ok());
  use(kTaggedCalls);
  const std::string tagged =
      "<tool_call>\n<function=odd>\n<parameter=x>\n1\n</parameter>\n</function>\n</tool_call>";
  EXPECT_EQ(way(asking(tools(R"({"type": "object", "minProperties": 2})")), tagged), tagged + ".");
}

TEST_F(OutputConstraint, WarnsOfWhatAFormatIsNotHeldTo) {
  use(kHermesCalls);
  Generation generation = asking();
  generation.format = {OutputFormat::Kind::kJsonSchema,
                       json::parse(R"({"type": "string", "format": "path", "maxLength": 2})"),
                       {},
                       "response_format"};
  EXPECT_EQ(way(generation, R"("ab")"), R"("ab".)");
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the schema, #/format: answers are not held")));
  generation.format.strict = true;
  const auto strict = made(generation);
  ASSERT_FALSE(strict.ok());
  EXPECT_THAT(strict.status().message, HasSubstr("`response_format`: the schema, #/format"));
}

TEST_F(OutputConstraint, LetsNothingBehindCallsButCalls) {
  struct Style {
    std::string_view calls, call, separator;
  };
  for (const Style& style :
       {Style{kHermesCalls, "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>",
              "\n"},
        Style{kLlamaCalls, "{\"name\": \"g\", \"parameters\": {}}", ""},
        Style{kTaggedCalls, "<tool_call>\n<function=g>\n</function>\n</tool_call>", "\n"}}) {
    use(style.calls);
    Generation free = asking(kTools);
    const std::string call(style.call);
    EXPECT_EQ(way(free, call), call + ".");
    EXPECT_EQ(way(free, call + "Well"), call);
    if (style.separator.empty()) continue;
    const std::string both = fmt::format("{}{}{}", call, style.separator, call);
    EXPECT_EQ(way(free, both), both + ".");
    free.parallel_tools = false;
    EXPECT_EQ(way(free, both), call);
  }
}

TEST_F(OutputConstraint, HoldsTaggedCallsThatLackTheOuterTag) {
  use(kTaggedCalls);
  const Generation free = asking(kTools);
  EXPECT_EQ(way(free, "Well <function=f>\n</function>"), "Well <function=f>\n<");
  const std::string call =
      "<function=f>\n<parameter=city>\nRome\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
      "</function>\n</tool_call>";
  EXPECT_EQ(way(free, call), call + ".");
}

TEST_F(OutputConstraint, LeavesACallPossibleBesideAFormat) {
  use(kHermesCalls);
  Generation generation = asking(kTools);
  generation.format = {
      OutputFormat::Kind::kJsonSchema, json::parse(R"({"enum": ["a"]})"), {}, "format"};
  EXPECT_EQ(way(generation, "\"a\""), "\"a\".");
  const std::string_view call = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
  EXPECT_EQ(way(generation, call), fmt::format("{}.", call));
  generation.format = {OutputFormat::Kind::kGrammar, {}, "root ::= \"b\"", "grammar"};
  EXPECT_EQ(way(generation, "b"), "b.");
  EXPECT_EQ(way(generation, "<"), "");
}

TEST_F(OutputConstraint, SaysWhatBecomesOfAFormatBesideARequiredCall) {
  use(kHermesCalls);
  const std::string_view call = "<tool_call>\n{\"name\": \"g\", \"arguments\": {}}\n</tool_call>";
  for (const char* const name : {"", "g"}) {
    Generation generation = requiring(kTools, name);
    for (const auto kind : {OutputFormat::Kind::kJsonObject, OutputFormat::Kind::kJsonSchema}) {
      generation.format = {kind, json::parse(R"({"enum": ["a"]})"), {}, "response_format"};
      EXPECT_EQ(way(generation, call), fmt::format("{}.", call));
      EXPECT_THAT(warnings_, ElementsAre(HasSubstr("`response_format` has no effect")));
    }
    generation.format = {OutputFormat::Kind::kGrammar, {}, "root ::= \"b\"", "grammar"};
    EXPECT_EQ(made(generation).status().http_status, 400);
    EXPECT_EQ(made(generation).status().field, "grammar");
  }
}

TEST_F(OutputConstraint, RefusesToRequireCallsThatItCannotRead) {
  use("");
  EXPECT_EQ(made(requiring(kTools)).status().field, "tool_choice");
  EXPECT_EQ(way(asking(kTools), "x"), "free");
}

TEST_F(OutputConstraint, SaysThatToolsAreOfNoUseWhereTheTemplateWritesNoCalls) {
  use("");
  EXPECT_EQ(way(asking(kTools), "x"), "free");
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_THAT(warnings_.front(), HasSubstr("`tools`"));
}

TEST_F(OutputConstraint, HoldsTheAnswerBehindItsThoughts) {
  use(kHermesCalls, kThinking);
  Generation generation = asking();
  generation.format = {
      OutputFormat::Kind::kJsonSchema, json::parse(R"({"enum": [1]})"), {}, "format"};
  EXPECT_EQ(way(generation, "1"), "1.");
  EXPECT_EQ(way(generation, "<think>so</think>\n\n1"), "<think>so</think>\n\n1.");
  EXPECT_EQ(way(generation, "so</think>1", true), "so</think>1.");
  EXPECT_EQ(way(generation, "so</think>x", true), "so</think>");
  generation.think = false;
  EXPECT_EQ(way(generation, "<think>"), "");
}

}  // namespace
}  // namespace strata::serve
