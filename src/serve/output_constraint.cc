#include "serve/output_constraint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"
#include "grammar/grammar.h"
#include "grammar/grammar_constraint.h"
#include "grammar/json_schema.h"
#include "serve/call_constraint.h"
#include "serve/tagged_arguments.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using Id = GrammarBuilder::Id;
using Kind = OutputFormat::Kind;

constexpr std::uint32_t kMostSpaces = 4;  // behind a thinking block

// What of a request decides the grammar.
struct Wanted {
  const OutputFormat& format;
  std::optional<ToolGrammar> tools;  // whose calls the answer may be, besides the format
  ThinkingTags thinking;             // a block that may come first; empty: none
  bool in_thinking = false;          // the prompt has opened it

  std::string key() const;
};

std::string Wanted::key() const {
  std::string out = fmt::format("{}|{}|{}|{}|", static_cast<int>(format.kind), in_thinking,
                                thinking.open, thinking.close);
  out += format.kind == Kind::kGrammar ? format.grammar : json::serialize(format.schema);
  if (!tools) return out;
  out += fmt::format("|{}|{}|{}", tools->tagged, tools->repeats, tools->separator);
  for (const ToolGrammar::Call& call : tools->calls)
    out += fmt::format("|{}|{}|{}", call.begin, call.end, json::serialize(call.schema));
  return out;
}

// What of the tools' schemas calls do not keep to.
std::vector<std::string> notes_of(const ToolGrammar& tools) {
  std::vector<std::string> out;
  if (!tools.tagged) return out;
  SchemaWork work;
  for (const ToolGrammar::Call& call : tools.calls)
    if (const auto tool = tagged_tool(call.name, call.schema, work); tool.ok())
      out.insert(out.end(), tool->notes.begin(), tool->notes.end());
  return out;
}

Result<Id> add_call(JsonText& text, const ToolGrammar::Call& call, bool tagged, SchemaWork& work) {
  GrammarBuilder& builder = text.builder();
  const std::string where = fmt::format("the tool {}", call.name);
  STRATA_ASSIGN(const Id arguments, tagged
                                        ? add_tagged_arguments(text, call.name, call.schema, work)
                                        : add_json_objects(text, call.schema, where, work));
  return builder.sequence({builder.literal(call.begin), arguments, builder.literal(call.end)});
}

Result<Id> add_calls(JsonText& text, const ToolGrammar& tools, SchemaWork& work) {
  GrammarBuilder& builder = text.builder();
  std::vector<Id> calls;
  for (const ToolGrammar::Call& call : tools.calls) {
    STRATA_ASSIGN(const Id one, add_call(text, call, tools.tagged, work));
    calls.push_back(one);
  }
  const Id any = builder.choice(std::move(calls));
  if (!tools.repeats) return any;
  const Id more = builder.sequence({builder.literal(tools.separator), any});
  return builder.sequence({any, builder.repeat(more, 0, kUnbounded)});
}

Result<Id> add_format(JsonText& text, const OutputFormat& format, SchemaWork& work) {
  if (format.kind != Kind::kJsonSchema) return text.object();
  return add_json_schema(text, format.schema, "the schema", work);
}

Result<Id> add_body(JsonText& text, const Wanted& wanted) {
  GrammarBuilder& builder = text.builder();
  SchemaWork work;
  if (!wanted.tools) return add_format(text, wanted.format, work);
  STRATA_ASSIGN(const Id calls, add_calls(text, *wanted.tools, work));
  if (wanted.format.kind == Kind::kText) return calls;
  STRATA_ASSIGN(const Id format, add_format(text, wanted.format, work));
  return builder.choice({calls, format});
}

Result<Grammar> make_grammar(const Wanted& wanted) {
  if (wanted.format.kind == Kind::kGrammar && !wanted.tools)
    return parse_gbnf(wanted.format.grammar);
  GrammarBuilder builder;
  JsonText text(builder);
  STRATA_ASSIGN(const Id body, add_body(text, wanted));
  const GrammarBuilder::RuleId root = builder.add_rule("root");
  std::vector<Id> parts;
  if (!wanted.thinking.close.empty()) {
    const Id space = builder.choice({builder.literal(" "), builder.literal("\n")});
    const Id rest = builder.sequence(
        {builder.text_through(wanted.thinking.close), builder.repeat(space, 0, kMostSpaces)});
    parts.push_back(wanted.in_thinking ? rest
                                       : builder.optional(builder.sequence(
                                             {builder.literal(wanted.thinking.open), rest})));
  }
  parts.push_back(body);
  builder.define(root, builder.sequence(std::move(parts)));
  return builder.compile(root);
}

// The tools that may be called, as a grammar of their calls; nothing where none may.
Answer<std::optional<ToolGrammar>> callable(ToolStyle style, const Generation& generation) {
  const ToolChoice& choice = generation.tool_choice;
  if (generation.tools.empty() || choice.mode == ToolChoice::Mode::kNone)
    return std::optional<ToolGrammar>();
  if (style == ToolStyle::kNone) {
    if (choice.mode == ToolChoice::Mode::kAuto) return std::optional<ToolGrammar>();
    return wrong_field("tool_choice",
                       "asks for a call, but how the model's template writes calls is not known");
  }
  std::vector<Tool> tools = generation.tools;
  if (!choice.name.empty())
    std::erase_if(tools, [&](const Tool& tool) { return tool.name != choice.name; });
  ToolGrammar grammar = tool_grammar(style, tools);
  grammar.repeats = grammar.repeats && generation.parallel_tools;
  return std::optional(std::move(grammar));
}

// A call that is required leaves no room for a format.
std::optional<Refusal> check_format(const OutputFormat& format,
                                    std::vector<std::string>& warnings) {
  if (format.kind == Kind::kGrammar)
    return wrong_field(format.field, "cannot be given where `tool_choice` requires a call");
  if (format.kind != Kind::kText)
    warnings.push_back(
        fmt::format("`{}` has no effect, as `tool_choice` requires a call", format.field));
  return std::nullopt;
}

using Masks = std::shared_ptr<TokenMasks>;

// Null where there is no room for them.
Result<Masks> masks_of(const ServedModel& model, const Wanted& wanted) {
  return model.masks(wanted.key(), [&] { return make_grammar(wanted); });
}

Refusal no_room() {
  return Refusal(503, "overloaded_error",
                 "the grammars of other answers take all the room there is for them; try again");
}

}  // namespace

Answer<std::shared_ptr<const Constraint>> constraint_of(const ServedModel& model,
                                                        const Generation& generation,
                                                        bool starts_thinking,
                                                        std::vector<std::string>& warnings) {
  using Made = std::shared_ptr<const Constraint>;
  const OutputFormat& format = generation.format;
  const bool chat = generation.source == Generation::Source::kMessages;
  const ToolStyle style = chat ? model.chat()->tool_style() : ToolStyle::kNone;
  STRATA_ASSIGN(auto tools, callable(style, generation));
  const bool required = generation.tool_choice.mode == ToolChoice::Mode::kRequired;
  if (required) STRATA_CHECK(check_format(format, warnings));
  if (!tools && !generation.tools.empty() && generation.tool_choice.mode == ToolChoice::Mode::kAuto)
    warnings.emplace_back(
        "`tools`: how the model's chat template writes calls is not known, so answers hold none");
  if (!tools && format.kind == Kind::kText) return Made();
  if (tools)
    for (std::string& each : notes_of(*tools)) warnings.push_back(printable(each));
  ThinkingTags thinking;
  if (chat && (starts_thinking || generation.think.value_or(true)))
    thinking = model.chat()->thinking().tags;
  if (tools && !required && format.kind == Kind::kText) {
    CallStart start{tools->triggers, style == ToolStyle::kLlama, std::string(kPythonTag), thinking,
                    starts_thinking};
    const OutputFormat any;
    auto masks = masks_of(model, {any, std::move(tools), {}, false});
    if (masks.ok() && !*masks) return no_room();
    if (masks.ok())
      return Made(std::make_shared<CallConstraint>(std::move(masks).value(), std::move(start)));
    warnings.push_back("calls are not held to their schemas: " + masks.status().message());
    return Made();
  }
  // A grammar of the client's says all; a required call comes whatever the format.
  const OutputFormat any;
  if (format.kind == Kind::kGrammar && !required) tools.reset();
  auto masks = masks_of(
      model, {required ? any : format, std::move(tools), std::move(thinking), starts_thinking});
  if (!masks.ok()) return wrong_field(required ? "tools" : format.field, masks.status());
  if (!*masks) return no_room();
  return Made(std::make_shared<GrammarConstraint>(std::move(masks).value()));
}

}  // namespace strata::serve
