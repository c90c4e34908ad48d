#include "text/tool_calls.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <set>

#include "text/json_scanner.h"

namespace strata {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxNameBytes = 128;
constexpr const char* kBareCall = "{\"name\": \"";

std::string_view without_space_behind(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kJsonSpace) + 1);
}

// Takes `piece` and the white space before it off the end of `text`.
bool take_behind(std::string_view& text, std::string_view piece) {
  const std::string_view trimmed = without_space_behind(text);
  if (!trimmed.ends_with(piece)) return false;
  text = trimmed.substr(0, trimmed.size() - piece.size());
  return true;
}

bool take_front(std::string_view& text, std::string_view piece) {
  text.remove_prefix(std::min(text.find_first_not_of(kJsonSpace), text.size()));
  if (!text.starts_with(piece)) return false;
  text.remove_prefix(piece.size());
  return true;
}

bool is_name(std::string_view name) {
  constexpr std::string_view kMarks = "_-.:/";
  return !name.empty() && name.size() <= kMaxNameBytes && std::ranges::all_of(name, [&](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
           (byte >= 'A' && byte <= 'Z') || kMarks.find(byte) != std::string_view::npos;
  });
}

// The number of a \u escape at the start of `text`; nothing where there is none.
std::optional<unsigned> escaped_unit(std::string_view text) {
  constexpr std::size_t kBytes = 6;
  if (text.size() < kBytes || !text.starts_with("\\u")) return std::nullopt;
  unsigned unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + kBytes, unit, 16);
  if (error != std::errc() || end != text.data() + kBytes) return std::nullopt;
  return unit;
}

// JSON in which no escape is half of a surrogate pair.
std::string with_whole_pairs(std::string_view text) {
  const auto in = [](std::optional<unsigned> unit, unsigned first) {
    return unit && *unit >= first && *unit < first + 0x400;
  };
  std::string out;
  while (!text.empty()) {
    const std::optional<unsigned> unit = escaped_unit(text);
    const bool high = in(unit, 0xD800);
    const bool pair = high && in(escaped_unit(text.substr(6)), 0xDC00);
    const std::size_t taken = pair ? 12 : unit ? 6 : text.front() == '\\' ? 2 : 1;
    if (!pair && (high || in(unit, 0xDC00)))
      out += "\\ufffd";
    else
      out += text.substr(0, taken);
    text.remove_prefix(std::min(taken, text.size()));
  }
  return out;
}

Result<Tool> read_tool(const json::value& value) {
  const json::object* tool = value.if_object();
  if (tool == nullptr) return invalid_argument("must be an object");
  const json::value* type = tool->if_contains("type");
  if (type != nullptr && (!type->is_string() || type->get_string() != "function"))
    return invalid_argument("\"type\" must be \"function\"");
  const json::value* function = tool->if_contains("function");
  if (function == nullptr || !function->is_object())
    return invalid_argument("\"function\" must be an object with a name and parameters");
  const json::object& fields = function->get_object();
  const json::value* name = fields.if_contains("name");
  if (name == nullptr || !name->is_string() || !is_name(name->get_string()))
    return invalid_argument(
        "\"function.name\" must be a string of at most {} letters, digits and the marks _-.:/",
        kMaxNameBytes);
  Tool out{std::string(name->get_string()), {{"type", "object"}, {"properties", json::object{}}}};
  const json::value* parameters = fields.if_contains("parameters");
  if (parameters == nullptr || parameters->is_null()) return out;
  if (!parameters->is_object())
    return invalid_argument("\"function.parameters\" must be a JSON schema, an object");
  if (!parameters->get_object().empty()) out.parameters = parameters->get_object();
  return out;
}

// Calls as one JSON value each, with `key` before the arguments.
ToolGrammar json_grammar(const std::vector<Tool>& tools, std::string_view open,
                         std::string_view key, std::string_view close) {
  ToolGrammar out;
  for (const Tool& tool : tools) {
    ToolGrammar::Call call;
    call.name = tool.name;
    call.begin = fmt::format("{}{{\"name\": {}, \"{}\": ", open, json_quoted(tool.name), key);
    call.schema = tool.parameters;
    call.end = fmt::format("}}{}", close);
    out.calls.push_back(std::move(call));
  }
  return out;
}

ToolGrammar tagged_grammar(const std::vector<Tool>& tools) {
  ToolGrammar out;
  out.tagged = true;
  for (const Tool& tool : tools) {
    ToolGrammar::Call call;
    call.name = tool.name;
    call.begin = fmt::format("<tool_call>\n<function={}>\n", tool.name);
    call.schema = tool.parameters;
    call.end = "</function>\n</tool_call>";
    out.calls.push_back(std::move(call));
  }
  return out;
}

}  // namespace

ToolStyle tool_style_of(std::string_view rendered, std::string_view name, std::string_view key) {
  const std::size_t at = rendered.rfind(name);
  if (at == std::string_view::npos) return ToolStyle::kNone;
  std::string_view before = rendered.substr(0, at), behind = rendered.substr(at + name.size());
  if (take_behind(before, kFunctionTag)) {
    const bool tagged = take_front(behind, ">") && take_front(behind, "<parameter=") &&
                        take_front(behind, key) && take_front(behind, ">");
    return tagged ? ToolStyle::kFunctionTags : ToolStyle::kNone;
  }
  const bool named = take_behind(before, "\"") && take_behind(before, ":") &&
                     take_behind(before, "\"name\"") && take_behind(before, "{") &&
                     take_front(behind, "\"") && take_front(behind, ",") &&
                     take_front(behind, "\"");
  if (!named) return ToolStyle::kNone;
  if (take_behind(before, kCallTag) && take_front(behind, "arguments")) return ToolStyle::kHermes;
  // A bare object: not an item of a list, and not behind a tag of its own.
  const std::string_view last = without_space_behind(before);
  const bool bare =
      last.empty() || last.ends_with("<|end_header_id|>") || last.ends_with(kPythonTag);
  return bare && take_front(behind, "parameters") ? ToolStyle::kLlama : ToolStyle::kNone;
}

std::optional<json::object> arguments_of(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMostJsonDepth;
  boost::system::error_code error;
  json::value value = json::parse(with_whole_pairs(text), error, {}, options);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.as_object());
}

std::vector<std::string_view> tool_tags(ToolStyle style) {
  switch (style) {
    case ToolStyle::kNone: break;
    case ToolStyle::kHermes:
    case ToolStyle::kFunctionTags: return {kCallTag, kEndCallTag};
    case ToolStyle::kLlama: return {kPythonTag};
  }
  return {};
}

Result<std::vector<Tool>> read_tools(const json::value& tools) {
  std::vector<Tool> out;
  if (tools.is_null()) return out;
  if (!tools.is_array()) return invalid_argument("\"tools\" must be a list of tools");
  std::set<std::string> names;
  for (const json::value& value : tools.get_array()) {
    const std::string place = fmt::format("tools[{}]", out.size());
    auto tool = read_tool(value);
    if (!tool.ok()) return tool.status().with_context(place);
    if (!names.insert(tool->name).second)
      return invalid_argument("{}: a tool named \"{}\" is there already", place, tool->name);
    out.push_back(std::move(*tool));
  }
  return out;
}

ToolGrammar tool_grammar(ToolStyle style, const std::vector<Tool>& tools) {
  ToolGrammar out;
  switch (style) {
    case ToolStyle::kNone: return out;
    case ToolStyle::kHermes:
      out = json_grammar(tools, "<tool_call>\n", "arguments", "\n</tool_call>");
      out.triggers = {{std::string(kCallTag), std::string(kCallTag)}};
      break;
    case ToolStyle::kLlama:
      out = json_grammar(tools, "", "parameters", "");
      out.triggers = {{kBareCall, kBareCall}};
      return out;
    case ToolStyle::kFunctionTags:
      out = tagged_grammar(tools);
      // Models leave out the outer tag at times.
      out.triggers = {{std::string(kCallTag), std::string(kCallTag)},
                      {std::string(kFunctionTag), fmt::format("{}\n{}", kCallTag, kFunctionTag)}};
      break;
  }
  out.separator = "\n";
  out.repeats = true;
  return out;
}

}  // namespace strata
