#include "text/messages.h"

#include <algorithm>
#include <array>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <deque>
#include <string>
#include <string_view>

#include "base/printable.h"
#include "text/tool_calls.h"

namespace strata {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 5> kRoles = {"system", "developer", "user", "assistant",
                                                    "tool"};
// What clients call the thoughts of an assistant.
constexpr const char* kThoughts = "reasoning_content";
constexpr std::array<const char*, 3> kThoughtNames = {kThoughts, "thinking", "reasoning"};
constexpr std::array<std::string_view, 3> kTextParts = {"text", "input_text", "output_text"};

// Absent and null are the same.
json::value* member_of(json::object& object, std::string_view key) {
  json::value* value = object.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::string_view> string_of(const json::value& value, std::string_view name) {
  if (!value.is_string()) return invalid_argument("\"{}\" must be a string", name);
  return std::string_view(value.get_string());
}

Result<json::value> read_part(json::value& value) {
  if (value.is_string()) return json::value{{"type", "text"}, {"text", value}};
  json::object* part = value.if_object();
  if (part == nullptr) return invalid_argument("must be an object with a \"type\"");
  if (const json::value* type = member_of(*part, "type"); type != nullptr) {
    STRATA_ASSIGN(const std::string_view name, string_of(*type, "type"));
    if (std::ranges::find(kTextParts, name) == kTextParts.end())
      return invalid_argument(
          "parts of type \"{}\" are not supported: Strata reads text only, no images, sound or "
          "files",
          printable(name, 64));
  }
  const json::value* text = member_of(*part, "text");
  if (text == nullptr) return invalid_argument("\"text\" is missing");
  STRATA_TRY(string_of(*text, "text").status());
  return json::value{{"type", "text"}, {"text", *text}};
}

Status read_content(json::object& message, std::string_view role) {
  for (const char* name : {"audio", "function_call"})
    if (member_of(message, name) != nullptr)
      return invalid_argument("\"{}\" is not supported", name);
  if (json::value* images = member_of(message, "images"); images != nullptr) {
    if (!images->is_array() || !images->get_array().empty())
      return invalid_argument("\"images\" are not supported: Strata reads text only");
    message.erase("images");
  }
  json::value* content = member_of(message, "content");
  if (content == nullptr) {
    if (role != "assistant" && role != "tool") return invalid_argument("\"content\" is missing");
    message["content"] = "";
    return {};
  }
  if (content->is_string()) return {};
  if (!content->is_array())
    return invalid_argument("\"content\" must be a string or a list of parts");
  std::size_t number = 0;
  for (json::value& value : content->get_array()) {
    auto part = read_part(value);
    if (!part.ok()) return part.status().with_context(fmt::format("content[{}]", number));
    value = std::move(*part);
    ++number;
  }
  return {};
}

Status read_arguments(json::object& function) {
  json::value* arguments = member_of(function, "arguments");
  if (arguments == nullptr || (arguments->is_string() && arguments->get_string().empty())) {
    function["arguments"] = json::object();
    return {};
  }
  if (arguments->is_string()) {
    if (auto parsed = arguments_of(arguments->get_string())) *arguments = std::move(*parsed);
  }
  if (arguments->is_object()) return {};
  return invalid_argument(
      "\"function.arguments\" must be a JSON object or a string that holds one");
}

struct OpenCall {
  std::string id, name;
};

Result<OpenCall> read_call(json::value& value, std::size_t number) {
  json::object* call = value.if_object();
  json::value* function = call != nullptr ? member_of(*call, "function") : nullptr;
  if (function == nullptr || !function->is_object())
    return invalid_argument("must be an object with a \"function\"");
  json::value* name = member_of(function->get_object(), "name");
  if (name == nullptr) return invalid_argument("\"function.name\" is missing");
  STRATA_TRY(string_of(*name, "function.name").status());
  OpenCall out{{}, std::string(name->get_string())};
  STRATA_TRY(read_arguments(function->get_object()));
  if (member_of(*call, "type") == nullptr) (*call)["type"] = "function";
  if (member_of(*call, "id") == nullptr) (*call)["id"] = fmt::format("call{:05}", number);
  STRATA_ASSIGN(const std::string_view id, string_of((*call)["id"], "id"));
  out.id = id;
  return out;
}

class MessageReader {
 public:
  Status read(json::value& value) {
    json::object* message = value.if_object();
    if (message == nullptr) return invalid_argument("must be an object");
    json::value* given = member_of(*message, "role");
    if (given == nullptr) return invalid_argument("\"role\" is missing");
    STRATA_ASSIGN(const std::string_view text, string_of(*given, "role"));
    const auto* role = std::ranges::find(kRoles, text);
    if (role == kRoles.end())
      return invalid_argument(
          "\"role\" must be system, developer, user, assistant or tool, not \"{}\"",
          printable(text, 64));
    STRATA_TRY(read_content(*message, *role));
    if (*role == "assistant") return read_assistant(*message);
    if (*role == "tool") return read_result(*message);
    return {};
  }

 private:
  Status read_assistant(json::object& message) {
    for (const char* name : kThoughtNames) {
      json::value* thought = member_of(message, name);
      if (thought == nullptr) continue;
      STRATA_TRY(string_of(*thought, name).status());
      if (name == kThoughts) break;
      json::value kept = std::move(*thought);
      message.erase(name);
      message[kThoughts] = std::move(kept);
      break;
    }
    json::value* calls = member_of(message, "tool_calls");
    if (calls == nullptr || (calls->is_array() && calls->get_array().empty())) {
      message.erase("tool_calls");
      return {};
    }
    if (!calls->is_array()) return invalid_argument("\"tool_calls\" must be a list of calls");
    open_.clear();
    for (json::value& value : calls->get_array()) {
      auto call = read_call(value, ++calls_);
      if (!call.ok())
        return call.status().with_context(fmt::format("tool_calls[{}]", open_.size()));
      open_.push_back(std::move(*call));
    }
    return {};
  }

  // Finds the call that a result answers by its id, else by its name, else by the order.
  Status read_result(json::object& message) {
    for (const char* name : {"tool_call_id", "tool_name", "name"})
      if (const json::value* text = member_of(message, name); text != nullptr)
        STRATA_TRY(string_of(*text, name).status());
    json::value* id = member_of(message, "tool_call_id");
    json::value* name = member_of(message, "name");
    if (name == nullptr) name = member_of(message, "tool_name");
    const auto call = std::ranges::find_if(open_, [&](const OpenCall& open) {
      if (id != nullptr) return id->get_string() == open.id;
      return name == nullptr || name->get_string() == open.name;
    });
    if (call != open_.end()) {
      const OpenCall answered = *call;
      open_.erase(call);
      message["tool_call_id"] = answered.id;
      message["name"] = answered.name;
    } else if (name != nullptr) {
      const json::value kept = *name;
      message["name"] = kept;
    }
    return {};
  }

  std::deque<OpenCall> open_;  // without a result so far
  std::size_t calls_ = 0;
};

}  // namespace

Result<json::array> read_messages(const json::value& messages) {
  if (!messages.is_array() || messages.get_array().empty())
    return invalid_argument("\"messages\" must be a list of at least one message");
  json::array out = messages.get_array();
  MessageReader reader;
  std::size_t number = 0;
  for (json::value& message : out) {
    const Status status = reader.read(message);
    if (!status.ok()) return status.with_context(fmt::format("messages[{}]", number));
    ++number;
  }
  return out;
}

}  // namespace strata
