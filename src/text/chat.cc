#include "text/chat.h"

#include <algorithm>
#include <array>
#include <boost/json/serialize.hpp>
#include <optional>
#include <utility>

namespace strata {
namespace {

namespace json = boost::json;

constexpr const char* kNeedle = "Strata probes.";
constexpr const char* kLeak = "strata_leak";
constexpr const char* kArgument = "strata_argument";

// How the field's models mark their thinking. The first pair whose end a template mentions.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kThinkingTags = {{
    {"<think>", "</think>"},
    {"<|START_THINKING|>", "<|END_THINKING|>"},
    {"<|channel>thought", "<channel|>"},
    {"[THINK]", "[/THINK]"},
    {"<|inner_prefix|>", "<|inner_suffix|>"},
    {"<seed:think>", "</seed:think>"},
    {"<thinking>", "</thinking>"},
    {"<reasoning>", "</reasoning>"},
    {"Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]"},
}};
constexpr std::array<std::string_view, 3> kThinkingSwitches = {"enable_thinking", "thinking",
                                                               "reasoning"};

// Far below the limits of real renders: a hostile template must not make loading slow.
jinja::RenderLimits probe_limits() {
  jinja::RenderLimits limits;
  limits.steps = 1'000'000;
  return limits;
}

json::object message(std::string_view role, json::value content) {
  return json::object{{"role", role}, {"content", std::move(content)}};
}

json::value text_part(std::string_view text) {
  return json::object{{"type", "text"}, {"text", text}};
}

bool holds(std::string_view text, std::string_view piece) {
  return text.find(piece) != std::string_view::npos;
}

json::object calling_message(json::value content, json::value arguments) {
  json::object out = message("assistant", std::move(content));
  out["tool_calls"] = json::array{json::object{
      {"id", "call00001"},
      {"type", "function"},
      {"function", json::object{{"name", kLeak}, {"arguments", std::move(arguments)}}}}};
  return out;
}

bool holds_all(std::string_view text, std::initializer_list<std::string_view> pieces) {
  return std::ranges::all_of(pieces, [&](std::string_view piece) { return holds(text, piece); });
}

json::value* member(json::value* value, std::string_view key) {
  json::object* fields = value != nullptr ? value->if_object() : nullptr;
  return fields != nullptr ? fields->if_contains(key) : nullptr;
}

// What a client may leave out of a tool.
void complete_tool(json::value& tool) {
  json::value* const function = member(&tool, "function");
  if (function == nullptr || !function->is_object()) return;
  const auto put = [&](std::string_view key, json::value missing) {
    json::value& value = function->get_object()[key];
    if (value.is_null()) value = std::move(missing);
  };
  put("description", "");
  put("parameters", json::object{{"type", "object"}, {"properties", json::object{}}});
}

void put_token(json::object& out, std::string_view name, const std::string& text) {
  if (!text.empty()) out[name] = text;
}

// The text of a content that is a list of parts, which must all be text.
Result<std::string> join_parts(const json::array& parts) {
  std::string out;
  for (const json::value& part : parts) {
    if (const json::string* text = part.if_string(); text != nullptr) {
      out.append(text->data(), text->size());
      continue;
    }
    const json::object* fields = part.if_object();
    const json::value* text = fields != nullptr ? fields->if_contains("text") : nullptr;
    const json::value* type = fields != nullptr ? fields->if_contains("type") : nullptr;
    const bool is_text = type == nullptr || (type->is_string() && type->get_string() == "text");
    if (text == nullptr || !text->is_string() || !is_text)
      return invalid_argument(
          "this model's chat template takes text only; a message has a part that is not text");
    out.append(text->get_string().data(), text->get_string().size());
  }
  return out;
}

// Moves `now` out of the variables and drops what counts as absent.
Result<jinja::RenderInputs> split_inputs(const ChatInputs& inputs, const SpecialTexts& special) {
  jinja::RenderInputs out;
  for (const auto& entry : inputs) {
    if (entry.key() == "now") continue;
    const bool no_tools =
        entry.key() == "tools" && (entry.value().is_null() ||
                                   (entry.value().is_array() && entry.value().get_array().empty()));
    if (!no_tools) out.content.emplace(entry.key(), entry.value());
  }
  if (const json::value* now = inputs.if_contains("now"); now != nullptr && !now->is_null()) {
    if (now->is_string()) out.now = jinja::parse_time(now->get_string());
    if (!out.now) return invalid_argument("\"now\" must be a time such as \"2026-03-14T15:09:26\"");
  }
  put_token(out.scaffolding, "bos_token", special.bos);
  put_token(out.scaffolding, "eos_token", special.eos);
  put_token(out.scaffolding, "unk_token", special.unk);
  put_token(out.scaffolding, "pad_token", special.pad);
  return out;
}

}  // namespace

SpecialTexts special_texts(const Metadata& metadata) {
  SpecialTexts out;
  const auto tokens = metadata.get_array("tokenizer.ggml.tokens");
  if (!tokens.ok()) return out;
  const auto texts = tokens.value()->as_strings();
  if (!texts.ok()) return out;
  const auto text_of = [&](std::string_view key) -> std::string {
    const auto id = metadata.get_integer(key);
    if (!id.ok() || *id < 0 || static_cast<std::uint64_t>(*id) >= texts->size()) return "";
    return std::string((*texts)[static_cast<std::size_t>(*id)]);
  };
  out.bos = text_of("tokenizer.ggml.bos_token_id");
  out.eos = text_of("tokenizer.ggml.eos_token_id");
  out.unk = text_of("tokenizer.ggml.unknown_token_id");
  out.pad = text_of("tokenizer.ggml.padding_token_id");
  return out;
}

Result<ChatTemplate> ChatTemplate::create(std::string_view source, SpecialTexts special) {
  STRATA_ASSIGN(jinja::Template parsed, jinja::Template::parse(source));
  ChatTemplate made(std::move(parsed), std::move(special));
  made.probe(source);
  return made;
}

Result<ChatTemplate> ChatTemplate::from_metadata(const Metadata& metadata) {
  if (!metadata.contains("tokenizer.chat_template"))
    return not_found("this model file has no chat template; pass one with --template FILE");
  STRATA_ASSIGN(const std::string_view source, metadata.get_string("tokenizer.chat_template"));
  return create(source, special_texts(metadata));
}

std::string ChatTemplate::probe_render(json::array messages, const ChatInputs& more) const {
  ChatInputs inputs = more;
  inputs["messages"] = std::move(messages);
  inputs["add_generation_prompt"] = true;
  inputs["now"] = "2000-01-01";
  const auto split = split_inputs(inputs, special_);
  if (!split.ok()) return "";
  const auto spans = template_.render(*split, probe_limits());
  return spans.ok() ? jinja::join(*spans) : "";
}

// Whether an assistant message of tool calls only may have null as its content.
bool ChatTemplate::probe_null_content() const {
  const auto render = [&](json::value content) {
    return probe_render(
        {message("user", kNeedle), calling_message(std::move(content), json::object{})});
  };
  const std::string text = render(nullptr);
  return holds(text, kLeak) && (!holds(text, "None") || holds(render(""), "None"));
}

// Whether a tool with nothing but a name makes it fail, and a completed one does not.
bool ChatTemplate::probe_whole_tools() const {
  json::value tool =
      json::object{{"type", "function"}, {"function", json::object{{"name", kLeak}}}};
  const auto render = [&] {
    return probe_render({message("user", kNeedle)}, ChatInputs{{"tools", json::array{tool}}});
  };
  const std::string bare = render();
  complete_tool(tool);
  return bare.empty() && !render().empty();
}

// Finds out by a conversation with a call of a tool, and where the template does not write that,
// by what it says of the form of calls.
void ChatTemplate::probe_tools(std::string_view source) {
  takes_developer_ = holds(source, "'developer'") || holds(source, "\"developer\"");
  const json::object arguments{{kArgument, kNeedle}};
  const auto render = [&](json::value given) {
    json::object result = message("tool", "1");
    result["tool_call_id"] = "call00001";
    result["name"] = kLeak;
    return probe_render({message("user", kNeedle), calling_message("", std::move(given)), result});
  };
  const std::string text = render(arguments);
  const std::string quoted = render(json::value(json::serialize(arguments)));
  // Python's way to write a dictionary, which no model is to see.
  const bool object =
      holds_all(text, {kLeak, kArgument}) && !holds(text, fmt::format("'{}'", kArgument));
  needs_argument_text_ = !object && holds_all(quoted, {kLeak, kArgument});
  const std::string& call = needs_argument_text_ ? quoted : text;
  if (holds(call, kLeak))
    tool_style_ = tool_style_of(call, kLeak, kArgument);
  else if (holds_all(source, {"<tool_call>", "<function=", "<parameter="}))
    tool_style_ = ToolStyle::kFunctionTags;
  else if (holds_all(source, {"<tool_call>", "arguments"}) && !holds(source, "<arg_key>"))
    tool_style_ = ToolStyle::kHermes;
}

void ChatTemplate::probe(std::string_view source) {
  const std::string plain = probe_render({message("user", kNeedle)});
  json::object part = text_part(kNeedle).as_object();
  part[kLeak] = kLeak;
  const std::string parts = probe_render({message("user", json::array{part})});
  // A template that prints the list itself gives away the part's other fields.
  takes_parts_ = holds(parts, kNeedle) && !holds(parts, kLeak);
  needs_parts_ = takes_parts_ && !holds(plain, kNeedle);
  takes_null_content_ = probe_null_content();
  needs_whole_tools_ = probe_whole_tools();
  probe_tools(source);

  for (const auto& [open, close] : kThinkingTags) {
    if (!holds(source, close)) continue;
    thinking_.tags = {std::string(open), std::string(close)};
    break;
  }
  for (const std::string_view name : kThinkingSwitches) {
    if (!holds(source, name)) continue;
    const auto switched = [&](bool on) {
      return probe_render({message("user", kNeedle)}, ChatInputs{{name, on}});
    };
    if (switched(true) == switched(false)) continue;
    thinking_.switched_by = std::string(name);
    break;
  }
}

void ChatTemplate::adapt_call(json::value& call) const {
  json::value* arguments = member(member(&call, "function"), "arguments");
  if (arguments == nullptr) return;
  if (needs_argument_text_ && arguments->is_object()) {
    *arguments = json::serialize(*arguments);
  } else if (!needs_argument_text_ && arguments->is_string()) {
    if (auto parsed = arguments_of(arguments->get_string())) *arguments = std::move(*parsed);
  }
}

Status ChatTemplate::adapt_message(json::object& message) const {
  if (json::value* role = message.if_contains("role"); role != nullptr && !takes_developer_ &&
                                                       role->is_string() &&
                                                       role->get_string() == "developer")
    *role = "system";
  if (json::value* calls = message.if_contains("tool_calls"); calls != nullptr && calls->is_array())
    for (json::value& call : calls->get_array()) adapt_call(call);
  json::value* content = message.if_contains("content");
  const bool has_calls = message.contains("tool_calls");
  if (content == nullptr) {
    if (!has_calls) return Status();
    content = &message["content"];
  }
  if (content->is_null() && (!has_calls || !takes_null_content_)) *content = "";
  if (content->is_array() && !takes_parts_) {
    STRATA_ASSIGN(std::string text, join_parts(content->get_array()));
    *content = text;
  } else if (content->is_string() && needs_parts_) {
    const json::string text = content->get_string();
    *content = json::array{text_part(text)};
  }
  return Status();
}

Result<std::vector<RenderedSpan>> ChatTemplate::render(const ChatInputs& inputs,
                                                       std::string* refused) const {
  ChatInputs adapted = inputs;
  const json::value* messages = adapted.if_contains("messages");
  if (messages == nullptr || !messages->is_array())
    return invalid_argument("\"messages\" must be a list of messages");
  for (json::value& message : adapted["messages"].get_array()) {
    if (!message.is_object()) return invalid_argument("every message must be an object");
    STRATA_TRY(adapt_message(message.get_object()));
  }
  if (json::value* tools = adapted.if_contains("tools");
      needs_whole_tools_ && tools != nullptr && tools->is_array())
    for (json::value& tool : tools->get_array()) complete_tool(tool);
  return render_verbatim(adapted, refused);
}

Result<std::vector<RenderedSpan>> ChatTemplate::render_verbatim(const ChatInputs& inputs,
                                                                std::string* refused) const {
  STRATA_ASSIGN(const jinja::RenderInputs split, split_inputs(inputs, special_));
  return template_.render(split, limits_, refused);
}

bool ChatTemplate::opens_thinking(const std::vector<RenderedSpan>& prompt) const {
  if (!supports_thinking() || prompt.empty() || prompt.back().content) return false;
  std::string_view tail = prompt.back().text;
  const std::size_t last = tail.find_last_not_of(" \t\r\n");
  return last != std::string_view::npos && tail.substr(0, last + 1).ends_with(thinking_.tags.open);
}

}  // namespace strata
