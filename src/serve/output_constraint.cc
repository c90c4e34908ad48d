#include "serve/output_constraint.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/printable.h"
#include "grammar/grammar.h"
#include "grammar/grammar_constraint.h"
#include "grammar/json_schema.h"
#include "grammar/schema_merge.h"
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

Result<Id> add_call(JsonText& text, const ToolGrammar::Call& call, bool tagged, SchemaWork& work,
                    SchemaNotes* notes) {
  GrammarBuilder& builder = text.builder();
  const std::string where = fmt::format("the tool {}", call.name);
  STRATA_ASSIGN(const Id arguments,
                tagged ? add_tagged_arguments(text, call.name, call.schema, work, notes)
                       : add_json_objects(text, call.schema, where, work, notes));
  const GrammarBuilder::RuleId rule = builder.add_rule(where);
  builder.define(
      rule, builder.sequence({builder.literal(call.begin), arguments, builder.literal(call.end)}));
  builder.require(rule);
  return builder.rule(rule);
}

Result<Id> add_calls(JsonText& text, const ToolGrammar& tools, SchemaWork& work,
                     SchemaNotes* notes) {
  GrammarBuilder& builder = text.builder();
  std::vector<Id> calls;
  for (const ToolGrammar::Call& call : tools.calls) {
    STRATA_ASSIGN(const Id one, add_call(text, call, tools.tagged, work, notes));
    calls.push_back(one);
  }
  const Id any = builder.choice(std::move(calls));
  if (!tools.repeats) return any;
  const Id more = builder.sequence({builder.literal(tools.separator), any});
  return builder.sequence({any, builder.repeat(more, 0, kUnbounded)});
}

Result<Id> add_format(JsonText& text, const OutputFormat& format, SchemaWork& work,
                      SchemaNotes* notes) {
  if (format.kind != Kind::kJsonSchema) return text.object();
  return add_json_schema(text, format.schema, "the schema", work, notes);
}

Result<Id> add_body(JsonText& text, const Wanted& wanted) {
  GrammarBuilder& builder = text.builder();
  SchemaWork work;
  SchemaNotes notes;  // settle() has told them
  if (!wanted.tools) return add_format(text, wanted.format, work, &notes);
  STRATA_ASSIGN(const Id calls, add_calls(text, *wanted.tools, work, &notes));
  if (wanted.format.kind == Kind::kText) return calls;
  STRATA_ASSIGN(const Id format, add_format(text, wanted.format, work, &notes));
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

// The tools whose schemas are to be held in full, or not at all.
std::set<std::string_view> strict_tools(const json::value& tool_list) {
  std::set<std::string_view> out;
  if (!tool_list.is_array()) return out;
  for (const json::value& tool : tool_list.get_array()) {
    const json::object* const fields = tool.if_object();
    const json::value* const function = fields == nullptr ? nullptr : find_key(*fields, "function");
    if (function == nullptr || !function->is_object()) continue;
    const json::value* const name = find_key(function->get_object(), "name");
    const json::value* const strict = find_key(function->get_object(), "strict");
    if (strict != nullptr && *strict == json::value(true) && name != nullptr && name->is_string())
      out.insert(view(name->get_string()));
  }
  return out;
}

// Lets any arguments be; an error where the tool is strict.
std::optional<Refusal> let_go(ToolGrammar::Call& call, const Status& why,
                              const std::set<std::string_view>& strict,
                              std::vector<std::string>& warnings) {
  if (strict.contains(call.name)) return wrong_field("tools", why);
  call.schema = json::object{{"type", "object"}, {"additionalProperties", true}};
  warnings.push_back(printable(fmt::format("calls of the tool {} are not held to its schema: {}",
                                           call.name, why.message())));
  return std::nullopt;
}

// Reads the schemas before a grammar is looked for: warns of what is not held of them, and lets go
// those of tools that cannot be held.
std::optional<Refusal> settle(Wanted& wanted, const std::set<std::string_view>& strict,
                              std::vector<std::string>& warnings) {
  GrammarBuilder builder;
  JsonText text(builder);
  SchemaWork work;
  SchemaNotes all;
  if (wanted.tools)
    for (ToolGrammar::Call& call : wanted.tools->calls) {
      SchemaNotes notes(strict.contains(call.name));
      const Status read = add_call(text, call, wanted.tools->tagged, work, &notes).status();
      all.add(notes);
      if (read.ok()) continue;
      if (work.is_over() || !builder.status().ok()) return wrong_field("tools", read);
      STRATA_CHECK(let_go(call, read, strict, warnings));
    }
  if (wanted.format.kind == Kind::kJsonSchema) {
    SchemaNotes notes(wanted.format.strict);
    const auto read = add_format(text, wanted.format, work, &notes);
    if (!read.ok()) return wrong_field(wanted.format.field, read.status());
    all.add(notes);
  }
  for (const std::string& each : all.all()) warnings.push_back(printable(each));
  return std::nullopt;
}

// Lets go the schemas of tools of which alone there is no grammar. Whether there was one.
Answer<bool> let_go_broken(Wanted& wanted, const std::set<std::string_view>& strict,
                           std::vector<std::string>& warnings) {
  bool any = false;
  if (!wanted.tools) return any;
  SchemaWork work;
  for (ToolGrammar::Call& call : wanted.tools->calls) {
    GrammarBuilder builder;
    JsonText text(builder);
    SchemaNotes notes;
    const auto read = add_call(text, call, wanted.tools->tagged, work, &notes);
    if (!read.ok()) return any;
    const GrammarBuilder::RuleId root = builder.add_rule(fmt::format("the tool {}", call.name));
    builder.define(root, *read);
    const auto grammar = builder.compile(root);
    if (grammar.ok()) continue;
    STRATA_CHECK(let_go(call, grammar.status(), strict, warnings));
    any = true;
  }
  return any;
}

using Masks = std::shared_ptr<TokenMasks>;

// Null where there is no room for them. An error within names no field.
Answer<Result<Masks>> masks_of(const ServedModel& model, Wanted wanted,
                               const std::set<std::string_view>& strict,
                               std::vector<std::string>& warnings) {
  STRATA_CHECK(settle(wanted, strict, warnings));
  const auto made = [&] { return model.masks(wanted.key(), [&] { return make_grammar(wanted); }); };
  auto masks = made();
  if (masks.ok()) return masks;
  STRATA_ASSIGN(const bool another, let_go_broken(wanted, strict, warnings));
  return another ? made() : masks;
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
  const std::set<std::string_view> strict = strict_tools(generation.tool_list);
  ThinkingTags thinking;
  if (chat && (starts_thinking || generation.think.value_or(true)))
    thinking = model.chat()->thinking().tags;
  if (tools && !required && format.kind == Kind::kText) {
    CallStart start{tools->triggers, style == ToolStyle::kLlama, std::string(kPythonTag), thinking,
                    starts_thinking};
    const OutputFormat any;
    STRATA_ASSIGN(auto masks,
                  masks_of(model, {any, std::move(tools), {}, false}, strict, warnings));
    if (masks.ok() && !*masks) return no_room();
    if (masks.ok())
      return Made(std::make_shared<CallConstraint>(std::move(masks).value(), std::move(start)));
    warnings.push_back("calls are not held to their schemas: " + masks.status().message());
    return Made();
  }
  // A grammar of the client's says all; a required call comes whatever the format.
  const OutputFormat any;
  if (format.kind == Kind::kGrammar && !required) tools.reset();
  STRATA_ASSIGN(auto masks, masks_of(model,
                                     {required ? any : format, std::move(tools),
                                      std::move(thinking), starts_thinking},
                                     strict, warnings));
  if (!masks.ok()) return wrong_field(required ? "tools" : format.field, masks.status());
  if (!*masks) return no_room();
  return Made(std::make_shared<GrammarConstraint>(std::move(masks).value()));
}

}  // namespace strata::serve
