#include "serve/openai_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>

#include "base/printable.h"
#include "serve/body.h"
#include "serve/chat_fields.h"
#include "serve/tool_schemas.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

constexpr std::int64_t kMostTokens = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMostChoices = 128;
constexpr std::int64_t kMostAnswers = 1024;  // of all prompts
constexpr std::size_t kMostNameBytes = 1024;
constexpr std::size_t kMostPrompts = 256;
constexpr std::size_t kMostCopiedBytes = 4 << 20;
constexpr std::size_t kMostBiases = 4096;
constexpr std::size_t kMostModalities = 8;
constexpr std::size_t kMostOutputs = 4096;  // to choose from
constexpr const char* kFormat = "response_format";
constexpr const char* kStructuredOutputs = "structured_outputs";
constexpr const char* kToolChoiceField = "tool_choice";

constexpr Shape kStreamOptions{{{"include_usage"}}};
constexpr Shape kJsonSchema{{{"name"}, {"description"}, {"schema"}, {"strict"}}};
constexpr Shape kFormatShape{{{"type"}, {"schema"}, {"json_schema", &kJsonSchema}}};
constexpr Shape kNamedFunction{{{"name"}}};
constexpr Shape kAllowedTool{{{"type"}, {"name"}, {"function", &kNamedFunction}}};
constexpr Shape kAllowedTools{{{"mode"}, {"tools", &kAllowedTool}}};
constexpr Shape kToolChoice{{{"type"},
                             {"name"},
                             {"function", &kNamedFunction},
                             {"allowed_tools", &kAllowedTools},
                             {"mode"},
                             {"tools", &kAllowedTool}}};
constexpr Shape kStructured{
    {{"json"}, {"json_object"}, {"choice"}, {"grammar"}, {"regex"}, {"structural_tag"}}};

std::optional<Refusal> read_logit_bias(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(const auto bias, fields.object("logit_bias"));
  if (bias == nullptr) return std::nullopt;
  if (bias->size() > kMostBiases) return fields.wrong("logit_bias", "has too many members");
  for (const auto& member : *bias) {
    const std::string_view key = member.key();
    TokenId token = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (error != std::errc() || end != key.data() + key.size() || !member.value().is_number())
      return fields.wrong("logit_bias", "must have numbers of tokens as names, and numbers");
    const auto value = member.value().to_number<double>();
    if (!(value >= -100 && value <= 100))
      return fields.wrong("logit_bias", "must lie between -100 and 100");
    // As OpenAI says of -100: a ban.
    generation.logit_bias.emplace_back(
        token, value == -100 ? -std::numeric_limits<float>::infinity() : static_cast<float>(value));
  }
  return std::nullopt;
}

void warn_of_penalties(Fields& fields) {
  for (const char* const name : {"presence_penalty", "frequency_penalty"})
    if (const json::value* value = fields.value(name);
        value != nullptr && value->is_number() && std::abs(value->to_number<double>()) > 2)
      fields.warn(name, "lies beyond the protocol's range, -2 to 2, and is taken as it is");
}

Answer<std::int32_t> tokens_of(Fields& fields, std::string_view name, std::int32_t otherwise) {
  STRATA_ASSIGN(const auto value, fields.integer(name, -1, kMostTokens));
  return value ? static_cast<std::int32_t>(*value) : otherwise;
}

// Kept with every prompt of the request.
Answer<std::string> name_of(Fields& fields, std::string_view field) {
  STRATA_ASSIGN(auto name, fields.text(field));
  if (name && name->size() > kMostNameBytes)
    return fields.wrong(field, fmt::format("is longer than {} bytes", kMostNameBytes));
  return std::move(name).value_or("");
}

std::optional<Refusal> read_tier(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(const auto tier,
                fields.word("service_tier", {"auto", "default", "flex", "scale", "priority"}));
  if (tier == "flex")
    generation.priority = std::min(generation.priority, kBackground);
  else if (tier == "scale" || tier == "priority")
    fields.warn("service_tier", "has no effect: nobody goes before the default tier here");
  return std::nullopt;
}

// One field alone may say what the answer is held to.
std::optional<Refusal> hold(Generation& generation, OutputFormat format) {
  if (generation.format.kind != OutputFormat::Kind::kText)
    return wrong_field(generation.format.field,
                       fmt::format("and `{}` cannot hold together", format.field));
  generation.format = std::move(format);
  return std::nullopt;
}

std::optional<Refusal> hold_to_grammar(Generation& generation, std::string grammar,
                                       std::string field) {
  if (grammar.empty()) return std::nullopt;
  return hold(generation, {OutputFormat::Kind::kGrammar, {}, std::move(grammar), std::move(field)});
}

std::optional<Refusal> hold_to_schema(Generation& generation, const json::value& schema,
                                      std::string field) {
  return hold(generation, {OutputFormat::Kind::kJsonSchema, schema, {}, std::move(field)});
}

// GBNF of one of these texts.
std::string grammar_of(const std::vector<std::string>& outputs) {
  std::string out = "root ::= ";
  for (const std::string& output : outputs) {
    out += out.back() == '"' ? " | \"" : "\"";
    for (const char byte : output) {
      if (byte == '"' || byte == '\\')
        out.append(1, '\\').append(1, byte);
      else if (static_cast<unsigned char>(byte) < 0x20)
        out += fmt::format("\\x{:02x}", static_cast<unsigned>(byte));
      else
        out += byte;
    }
    out += '"';
  }
  return out;
}

// vLLM's ways to say what the answer is held to. Each has a name of its own in the request, with a
// prefix, and one in the object that came later, whose path is `path`.
std::optional<Refusal> read_guides(Fields& fields, std::string_view path, std::string_view prefix,
                                   Generation& generation) {
  const auto name = [&](std::string_view guide) { return fmt::format("{}{}", prefix, guide); };
  const auto full = [&](std::string_view guide) { return fmt::format("{}{}", path, name(guide)); };
  if (const json::value* schema = fields.value(name("json"))) {
    json::value parsed = *schema;
    if (const json::string* text = schema->if_string()) {
      auto object = parse_body(text_of(*text));
      if (!object.ok()) return fields.wrong(name("json"), "is a text that holds no JSON schema");
      parsed = std::move(*object);
    }
    STRATA_CHECK(hold_to_schema(generation, parsed, full("json")));
  }
  STRATA_ASSIGN(const auto outputs, fields.texts(name("choice"), kMostOutputs));
  if (!outputs.empty())
    STRATA_CHECK(hold_to_grammar(generation, grammar_of(outputs), full("choice")));
  else if (fields.value(name("choice")) != nullptr)
    return fields.wrong(name("choice"), "names nothing to choose from");
  STRATA_ASSIGN(auto grammar, fields.text(name("grammar")));
  STRATA_CHECK(hold_to_grammar(generation, std::move(grammar).value_or(""), full("grammar")));
  return fields.refuse({name("regex")});
}

std::optional<Refusal> read_structured(Fields& fields, Generation& generation) {
  STRATA_CHECK(read_guides(fields, "", "guided_", generation));
  STRATA_ASSIGN(const auto structured, fields.object(kStructuredOutputs));
  if (structured == nullptr) return std::nullopt;
  fields.look_into(kStructuredOutputs, kStructured);
  const std::string path = fmt::format("{}.", kStructuredOutputs);
  Fields inner(*structured, path);
  STRATA_CHECK(read_guides(inner, path, "", generation));
  STRATA_CHECK(inner.refuse({"structural_tag"}));
  STRATA_ASSIGN(const auto any, inner.boolean("json_object"));
  if (!any.value_or(false)) return std::nullopt;
  return hold(generation, {OutputFormat::Kind::kJsonObject, {}, {}, path + "json_object"});
}

std::optional<Refusal> read_format(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(auto grammar, fields.text("grammar"));
  STRATA_CHECK(hold_to_grammar(generation, std::move(grammar).value_or(""), "grammar"));
  STRATA_CHECK(read_structured(fields, generation));
  STRATA_ASSIGN(const auto format, fields.object(kFormat));
  if (format == nullptr) return std::nullopt;
  fields.look_into(kFormat, kFormatShape);
  Fields inner(*format, "response_format.");
  STRATA_ASSIGN(const auto type, inner.text("type"));
  const std::string kind = type.value_or("");
  if (kind == "text") return std::nullopt;
  if (kind == "json_object") {
    const json::value* schema = inner.value("schema");
    return schema == nullptr ? hold(generation, {OutputFormat::Kind::kJsonObject, {}, {}, kFormat})
                             : hold_to_schema(generation, *schema, kFormat);
  }
  if (kind != "json_schema") return inner.wrong("type", "must be text, json_object or json_schema");
  STRATA_ASSIGN(const auto named, inner.object("json_schema"));
  const json::value* schema =
      named == nullptr ? inner.value("schema") : named->if_contains("schema");
  if (schema == nullptr) return inner.wrong("json_schema", "has no schema");
  const json::value* strict = named == nullptr ? nullptr : named->if_contains("strict");
  STRATA_CHECK(hold_to_schema(generation, *schema, kFormat));
  generation.format.strict = strict != nullptr && *strict == json::value(true);
  return std::nullopt;
}

std::optional<Refusal> read_common(Fields& fields, const json::object& object, OpenAiRequest& out,
                                   Generation& generation) {
  STRATA_ASSIGN(generation.model, name_of(fields, "model"));
  STRATA_ASSIGN(const auto stream, fields.boolean("stream"));
  out.stream = stream.value_or(false);
  STRATA_ASSIGN(const auto options, fields.object("stream_options"));
  if (options != nullptr) {
    fields.look_into("stream_options", kStreamOptions);
    Fields inner(*options, "stream_options.");
    STRATA_ASSIGN(const auto usage, inner.boolean("include_usage"));
    out.include_usage = usage.value_or(false);
  }
  STRATA_ASSIGN(const auto choices, fields.integer("n", 1, kMostChoices));
  generation.choices = static_cast<std::int32_t>(choices.value_or(1));
  STRATA_CHECK(take_stops(fields, generation));
  STRATA_CHECK(take_priority(fields, generation));
  STRATA_CHECK(read_tier(fields, generation));
  STRATA_ASSIGN(generation.user, name_of(fields, "user"));
  STRATA_ASSIGN(generation.cache_salt, name_of(fields, "cache_salt"));
  STRATA_ASSIGN(const auto ignore, fields.boolean("ignore_eos"));
  generation.ignore_end = ignore.value_or(false);
  take_sampling(fields, object, generation);
  warn_of_penalties(fields);
  STRATA_CHECK(read_logit_bias(fields, generation));
  return read_format(fields, generation);
}

std::optional<ToolChoice::Mode> mode_of(const json::value* word) {
  const json::string* const text = word == nullptr ? nullptr : word->if_string();
  if (text == nullptr) return std::nullopt;
  if (*text == "none") return ToolChoice::Mode::kNone;
  if (*text == "auto") return ToolChoice::Mode::kAuto;
  // "any" is what others say.
  if (*text == "required" || *text == "any") return ToolChoice::Mode::kRequired;
  return std::nullopt;
}

// Of {"function": {"name": ..}} or {"name": ..}; null where it is neither.
const json::string* function_name(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr) return nullptr;
  if (const json::value* function = object->if_contains("function")) object = function->if_object();
  const json::value* name = object == nullptr ? nullptr : object->if_contains("name");
  return name == nullptr ? nullptr : name->if_string();
}

// The prompt still has all tools, as its beginning is to stay the same; calls are of these alone.
std::optional<Refusal> allow_tools(Fields& fields, const json::object& choice,
                                   Generation& generation) {
  const json::value* inner = choice.if_contains("allowed_tools");
  const json::object* allowed = inner == nullptr ? &choice : inner->if_object();
  const auto mode = mode_of(allowed == nullptr ? nullptr : allowed->if_contains("mode"));
  const json::value* value = allowed == nullptr ? nullptr : allowed->if_contains("tools");
  const json::array* list = value == nullptr ? nullptr : value->if_array();
  if (!mode || *mode == ToolChoice::Mode::kNone || list == nullptr || list->empty())
    return fields.wrong(kToolChoiceField,
                        "must have `allowed_tools` with a `mode`, auto or required, and `tools`");
  std::set<std::string_view> known, names;
  for (const Tool& tool : generation.tools) known.insert(tool.name);
  for (const json::value& each : *list) {
    const json::string* name = function_name(each);
    if (name == nullptr || !known.contains(std::string_view(*name)))
      return fields.wrong(kToolChoiceField, "allows a function that is not among `tools`");
    names.insert(std::string_view(*name));
  }
  std::erase_if(generation.tools, [&](const Tool& tool) { return !names.contains(tool.name); });
  generation.tool_choice.mode = *mode;
  return std::nullopt;
}

std::optional<Refusal> read_tool_choice(Fields& fields, Generation& generation) {
  const json::value* choice = fields.value(kToolChoiceField);
  if (choice == nullptr) return std::nullopt;
  fields.look_into(kToolChoiceField, kToolChoice);
  const json::object* object = choice->if_object();
  const json::value* type = object == nullptr ? choice : object->if_contains("type");
  const json::string* word = type == nullptr ? nullptr : type->if_string();
  if (object != nullptr && word != nullptr && *word == "allowed_tools")
    return allow_tools(fields, *object, generation);
  ToolChoice& out = generation.tool_choice;
  if (const auto mode = mode_of(type)) {
    out.mode = *mode;
  } else {
    const json::string* name = function_name(*choice);
    if (name == nullptr)
      return fields.wrong(kToolChoiceField,
                          "must be none, auto, required, allowed tools or name a function");
    out = {ToolChoice::Mode::kRequired, text_of(*name)};
  }
  if (out.mode == ToolChoice::Mode::kRequired && generation.tools.empty())
    return fields.wrong(kToolChoiceField, "asks for a call, but there are no `tools`");
  const auto is_named = [&](const Tool& tool) { return tool.name == out.name; };
  if (!out.name.empty() && std::ranges::none_of(generation.tools, is_named))
    return fields.wrong(kToolChoiceField, "names a function that is not among `tools`");
  return std::nullopt;
}

std::optional<Refusal> read_tools_of(Fields& fields, Generation& generation) {
  STRATA_CHECK(check_tool_schemas(fields));
  STRATA_CHECK(take_tools(fields, generation));
  STRATA_ASSIGN(const auto parallel, fields.boolean("parallel_tool_calls"));
  generation.parallel_tools = parallel.value_or(true);
  return read_tool_choice(fields, generation);
}

std::optional<Refusal> read_thinking(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(const auto inputs, fields.object("chat_template_kwargs"));
  if (inputs != nullptr) {
    generation.template_inputs = *inputs;
    const json::value* on = inputs->if_contains("enable_thinking");
    if (on != nullptr && *on == true)
      generation.thinking_field = "chat_template_kwargs.enable_thinking";
  }
  STRATA_ASSIGN(generation.think, fields.boolean("think"));
  if (generation.think) generation.thinking_field = *generation.think ? "think" : "";
  STRATA_ASSIGN(const auto effort, fields.word("reasoning_effort", {"none", "minimal", "low",
                                                                    "medium", "high", "xhigh"}));
  if (!effort) return std::nullopt;
  generation.think = *effort != "none";
  generation.thinking_field = *generation.think ? "reasoning_effort" : "";
  generation.template_inputs["reasoning_effort"] = *effort;
  return std::nullopt;
}

// What OpenAI's service does and this program does not.
std::optional<Refusal> read_service(Fields& fields) {
  STRATA_ASSIGN(const auto modalities, fields.texts("modalities", kMostModalities));
  for (const std::string& each : modalities)
    if (each != "text") return fields.wrong("modalities", "may name text only");
  STRATA_ASSIGN(const auto verbosity, fields.word("verbosity", {"low", "medium", "high"}));
  if (verbosity && *verbosity != "medium")
    fields.warn("verbosity", "has no effect: no model here can be told");
  STRATA_ASSIGN(const auto store, fields.boolean("store"));
  if (store.value_or(false)) fields.warn("store", "has no effect: nothing is stored here");
  fields.accept({"metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"});
  return fields.refuse({"audio", "prediction", "web_search_options", "functions", "function_call"});
}

std::optional<Refusal> read_chat_logprobs(Fields& fields, OpenAiRequest& out,
                                          Generation& generation) {
  STRATA_ASSIGN(const auto wanted, fields.boolean("logprobs"));
  STRATA_ASSIGN(const auto top, fields.integer("top_logprobs", 0, 20));
  out.wants_logprobs = wanted.value_or(false);
  if (top && *top > 0 && !out.wants_logprobs)
    return fields.wrong("top_logprobs", "needs `logprobs` to be true");
  if (out.wants_logprobs) generation.top_logprobs = static_cast<std::int32_t>(top.value_or(0));
  return std::nullopt;
}

std::optional<Refusal> read_token_prompt(const json::array& list, Fields& fields,
                                         Generation& generation) {
  generation.source = Generation::Source::kTokens;
  for (const json::value& each : list) {
    boost::system::error_code error;
    const auto token = each.is_number() ? each.to_number<std::int32_t>(error) : -1;
    if (error || token < 0) return fields.wrong("prompt", "contains invalid tokens");
    generation.tokens.push_back(token);
  }
  return std::nullopt;
}

// Every prompt of the request gets a copy of all other members.
std::optional<Refusal> check_copied(Fields& fields, const json::object& object,
                                    std::size_t prompts) {
  std::size_t bytes = 0, most = 0;
  std::string_view largest;
  for (const auto& member : object) {
    if (member.key() == "prompt") continue;
    const std::size_t size = json::serialize(member.value()).size();
    bytes += size;
    if (size > most) largest = member.key();
    most = std::max(most, size);
  }
  if (bytes * prompts <= kMostCopiedBytes) return std::nullopt;
  return fields.wrong(printable(largest, 100),
                      fmt::format("is too long for {} prompts: the bytes of all but "
                                  "`prompt`, times the prompts, may be {} at most",
                                  prompts, kMostCopiedBytes));
}

// A text, tokens, or a list of either.
std::optional<Refusal> read_prompts(Fields& fields, const json::object& object,
                                    const Generation& common, OpenAiRequest& out) {
  const json::value* prompt = fields.value("prompt");
  if (prompt == nullptr) return fields.wrong("prompt", "is missing");
  const auto add = [&](const json::value& each) -> std::optional<Refusal> {
    Generation generation = common;
    if (const json::string* text = each.if_string()) {
      generation.source = Generation::Source::kText;
      generation.text = text_of(*text);
    } else if (const json::array* list = each.if_array()) {
      STRATA_CHECK(read_token_prompt(*list, fields, generation));
    } else {
      return fields.wrong("prompt", "must be a text, tokens, or a list of either");
    }
    out.generations.push_back(std::move(generation));
    return std::nullopt;
  };
  const json::array* list = prompt->if_array();
  const bool several = list != nullptr && !list->empty() && !list->front().is_number();
  if (!several) return add(*prompt);
  if (list->size() > kMostPrompts) return fields.wrong("prompt", "holds too many prompts");
  STRATA_CHECK(check_copied(fields, object, list->size()));
  for (const json::value& each : *list) STRATA_CHECK(add(each));
  return std::nullopt;
}

}  // namespace

Answer<OpenAiRequest> read_chat_request(std::string_view body) {
  STRATA_ASSIGN(const json::object object, parse_body(body));
  Fields fields(object);
  OpenAiRequest out;
  Generation generation;
  STRATA_CHECK(read_common(fields, object, out, generation));
  if (fields.value("messages") == nullptr) return fields.wrong("messages", "is missing");
  STRATA_CHECK(take_messages(fields, generation));
  STRATA_CHECK(read_tools_of(fields, generation));
  STRATA_CHECK(read_thinking(fields, generation));
  STRATA_CHECK(read_chat_logprobs(fields, out, generation));
  STRATA_ASSIGN(const std::int32_t most, tokens_of(fields, "max_tokens", -1));
  STRATA_ASSIGN(generation.max_tokens, tokens_of(fields, "max_completion_tokens", most));
  if (fields.value("max_tokens") != nullptr && generation.max_tokens != most)
    fields.warn("max_tokens", "has no effect: `max_completion_tokens` holds");
  STRATA_CHECK(read_service(fields));
  generation.warnings = fields.warnings();
  out.generations.push_back(std::move(generation));
  return out;
}

Answer<OpenAiRequest> read_completion_request(std::string_view body) {
  STRATA_ASSIGN(const json::object object, parse_body(body));
  Fields fields(object);
  OpenAiRequest out;
  Generation generation;
  STRATA_CHECK(read_common(fields, object, out, generation));
  STRATA_ASSIGN(generation.max_tokens, tokens_of(fields, "max_tokens", 16));
  STRATA_ASSIGN(const auto echo, fields.boolean("echo"));
  out.echo = echo.value_or(false);
  STRATA_ASSIGN(const auto logprobs, fields.integer("logprobs", 0, 20));
  out.wants_logprobs = logprobs.has_value();
  if (logprobs) generation.top_logprobs = static_cast<std::int32_t>(*logprobs);
  generation.report_prompt = out.echo;
  generation.prompt_logprobs = out.echo && out.wants_logprobs;
  STRATA_ASSIGN(const auto best, fields.integer("best_of", 1, kMostChoices));
  if (best && *best != generation.choices) return fields.wrong("best_of", "must equal `n`");
  STRATA_CHECK(fields.refuse({"suffix"}));
  const Generation common = std::move(generation);
  STRATA_CHECK(read_prompts(fields, object, common, out));
  if (std::ssize(out.generations) * common.choices > kMostAnswers)
    return fields.wrong(
        "n", fmt::format("asks for more than {} answers to all prompts together", kMostAnswers));
  const std::vector<std::string> warnings = fields.warnings();
  for (Generation& each : out.generations) each.warnings = warnings;
  return out;
}

}  // namespace strata::serve
