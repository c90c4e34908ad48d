// Tools that a model may call: how a template's model writes the calls, and what it may call.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace strata {

// How a model writes its calls. ChatTemplate finds out which.
enum class ToolStyle : std::uint8_t {
  kNone,    // a way that Strata does not read: calls stay text
  kHermes,  // <tool_call>{"name": .., "arguments": {..}}</tool_call>, also Qwen
  kLlama,   // {"name": .., "parameters": {..}}, perhaps behind <|python_tag|>
  // <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>, as
  // Qwen3-Coder; strings are bare, other values JSON. What may be either is a string unless it
  // reads as a value of the other kinds.
  kFunctionTags,
};

inline constexpr std::string_view kCallTag = "<tool_call>", kEndCallTag = "</tool_call>";
inline constexpr std::string_view kFunctionTag = "<function=", kPythonTag = "<|python_tag|>";

// The style of a rendered call of the function `name`, whose only argument has the key `key`.
ToolStyle tool_style_of(std::string_view rendered, std::string_view name, std::string_view key);
// The texts of control tokens that mark calls: text for the parser wherever they are tokens.
std::vector<std::string_view> tool_tags(ToolStyle style);

// The object that the text of a call's arguments is; nothing where it is none. An escaped half of a
// surrogate pair becomes U+FFFD, as in Go's and JavaScript's readers; models write such.
std::optional<boost::json::object> arguments_of(std::string_view text);

struct Tool {
  std::string name;
  boost::json::object parameters;  // JSON Schema; of an object without properties where not given
};
// The list `tools` of a request: {"type": "function", "function": {"name": .., "parameters":
// {..}}}. null is an empty list. kInvalidArgument, naming the field, for what is not of this form,
// and for names that are not unique or not of letters, digits and "_-.:/" (at most 128).
Result<std::vector<Tool>> read_tools(const boost::json::value& tools);

// What a constraint on the model's output is made of: one of `calls`, then, where they may repeat,
// any number of `separator` and another.
struct ToolGrammar {
  struct Call {
    std::string name, begin;
    boost::json::value schema;  // of the arguments, an object
    std::string end;
  };
  std::vector<Call> calls;
  // Between `begin` and `end` stand, where `tagged`, arguments as text/tagged_call.h has them, each
  // behind its key and with a line's end behind it; else the arguments as JSON.
  bool tagged = false;
  std::string separator;
  bool repeats = false;
  // Where calls are free to come, a constraint starts behind one of these texts.
  struct Trigger {
    std::string text;
    std::string begin;  // what it stands for, with which every Call::begin starts
  };
  std::vector<Trigger> triggers;
};
// REQUIRES: `style` is not kNone.
ToolGrammar tool_grammar(ToolStyle style, const std::vector<Tool>& tools);

}  // namespace strata
