#include "serve/output_constraint.h"

#include <fmt/format.h>

#include <algorithm>

#include "grammar/grammar.h"
#include "grammar/grammar_constraint.h"
#include "grammar/json_schema.h"
#include "grammar/json_text.h"

namespace strata::serve {
namespace {

namespace json = boost::json;
using Id = GrammarBuilder::Id;
using Kind = OutputFormat::Kind;

constexpr std::uint32_t kMostSpaces = 4;  // behind a thinking block

// What of a request decides the grammar.
struct Wanted {
  const OutputFormat& format;
  std::optional<ToolGrammar> tools;  // that are required
  ThinkingTags thinking;             // a block that may come first; empty: none
  bool in_thinking = false;          // the prompt has opened it

  std::string key() const;
};

std::string Wanted::key() const {
  std::string out = fmt::format("{}|{}|{}|{}|", static_cast<int>(format.kind), in_thinking,
                                thinking.open, thinking.close);
  out += format.kind == Kind::kGrammar ? format.grammar : json::serialize(format.schema);
  if (!tools) return out;
  out += fmt::format("|{}|{}", tools->repeats, tools->separator);
  for (const ToolGrammar::Call& call : tools->calls) {
    out += fmt::format("|{}|{}|{}", call.begin, call.end, json::serialize(call.schema));
    for (const ToolGrammar::Argument& of : call.arguments)
      out += fmt::format("|{}|{}|{}|{}|{}", of.begin, of.end, of.bare, of.required,
                         json::serialize(of.schema));
  }
  return out;
}

Result<Id> add_arguments(GrammarBuilder& builder, const ToolGrammar::Call& call) {
  std::vector<Id> parts;
  for (const ToolGrammar::Argument& argument : call.arguments) {
    std::vector<Id> one{builder.literal(argument.begin)};
    if (argument.bare) {
      one.push_back(builder.text_through(argument.end));
    } else {
      STRATA_ASSIGN(const Id value,
                    add_json_schema(builder, argument.schema,
                                    fmt::format("the tool {}, {}", call.name, argument.key)));
      one.push_back(value);
      one.push_back(builder.literal(argument.end));
    }
    const Id whole = builder.sequence(std::move(one));
    parts.push_back(argument.required ? whole : builder.optional(whole));
  }
  return builder.sequence(std::move(parts));
}

Result<Id> add_call(GrammarBuilder& builder, const ToolGrammar::Call& call) {
  Id body = builder.empty();
  if (call.has_arguments) {
    STRATA_ASSIGN(body, add_arguments(builder, call));
  } else {
    STRATA_ASSIGN(body,
                  add_json_schema(builder, call.schema, fmt::format("the tool {}", call.name)));
  }
  return builder.sequence({builder.literal(call.begin), body, builder.literal(call.end)});
}

Result<Id> add_calls(GrammarBuilder& builder, const ToolGrammar& tools) {
  std::vector<Id> calls;
  for (const ToolGrammar::Call& call : tools.calls) {
    STRATA_ASSIGN(const Id one, add_call(builder, call));
    calls.push_back(one);
  }
  const Id any = builder.choice(std::move(calls));
  if (!tools.repeats) return any;
  const Id more = builder.sequence({builder.literal(tools.separator), any});
  return builder.sequence({any, builder.repeat(more, 0, kUnbounded)});
}

Result<Id> add_body(GrammarBuilder& builder, const Wanted& wanted) {
  if (wanted.tools) return add_calls(builder, *wanted.tools);
  if (wanted.format.kind == Kind::kJsonObject) {
    const json::value object = json::object{{"type", "object"}};
    return add_json_schema(builder, object, "the schema");
  }
  return add_json_schema(builder, wanted.format.schema, "the schema");
}

Result<Grammar> make_grammar(const Wanted& wanted) {
  if (wanted.format.kind == Kind::kGrammar && !wanted.tools)
    return parse_gbnf(wanted.format.grammar);
  GrammarBuilder builder;
  STRATA_ASSIGN(const Id body, add_body(builder, wanted));
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

Result<std::shared_ptr<const Constraint>> make(const ServedModel& model, const Wanted& wanted) {
  STRATA_ASSIGN(auto masks, model.masks(wanted.key(), [&] { return make_grammar(wanted); }));
  return std::shared_ptr<const Constraint>(std::make_shared<GrammarConstraint>(std::move(masks)));
}

}  // namespace

Answer<std::shared_ptr<const Constraint>> constraint_of(const ServedModel& model,
                                                        const Generation& generation,
                                                        bool starts_thinking) {
  const bool chat = generation.source == Generation::Source::kMessages;
  const ToolStyle style = chat ? model.chat()->tool_style() : ToolStyle::kNone;
  const bool calls =
      !generation.tools.empty() && generation.tool_choice.mode != ToolChoice::Mode::kNone;
  const bool required = calls && generation.tool_choice.mode == ToolChoice::Mode::kRequired;
  if (required && style == ToolStyle::kNone)
    return Refusal(400, "invalid_request_error",
                   "the model's template writes tool calls in a way that is not supported, so none "
                   "can be required",
                   "tool_choice");
  Wanted wanted{generation.format, std::nullopt, {}, starts_thinking};
  if (chat && (starts_thinking || generation.think.value_or(true)))
    wanted.thinking = model.chat()->thinking().tags;
  if (required) {
    std::vector<Tool> tools = generation.tools;
    if (!generation.tool_choice.name.empty())
      std::erase_if(tools, [&](const Tool& t) { return t.name != generation.tool_choice.name; });
    wanted.tools = tool_grammar(style, tools);
    wanted.tools->repeats = wanted.tools->repeats && generation.parallel_tools;
  }
  if (!required && generation.format.kind == Kind::kText)
    return std::shared_ptr<const Constraint>();
  STRATA_ASSIGN(auto constraint, make(model, wanted));
  return constraint;
}

}  // namespace strata::serve
