// Any text as a model's output with tool calls, which must come to the same for every chunking; and
// as the tools and messages of a request. The first byte says which.
#include <algorithm>
#include <boost/json.hpp>

#include "text/messages.h"
#include "text/tool_call_parser.h"

namespace {

using namespace strata;
namespace json = boost::json;

void require(bool holds) {
  if (!holds) __builtin_trap();
}

struct Parsed {
  std::string content;
  std::vector<ToolCallDelta> calls;
  int errors = 0;

  void take(const ToolCallParser::Piece& piece) {
    content += piece.content;
    errors += piece.error.ok() ? 0 : 1;
    for (const ToolCallDelta& call : piece.calls) {
      const auto index = static_cast<std::size_t>(call.index);
      require(call.name.empty() == (index < calls.size()));
      if (index == calls.size()) calls.push_back({call.index, call.id, call.name, {}});
      require(index + 1 == calls.size());
      calls.back().arguments += call.arguments;
    }
  }
  bool operator==(const Parsed& other) const {
    const auto same = [](const ToolCallDelta& a, const ToolCallDelta& b) {
      return a.id == b.id && a.name == b.name && a.arguments == b.arguments;
    };
    return content == other.content && errors == other.errors &&
           std::ranges::equal(calls, other.calls, same);
  }
};

const std::vector<Tool>& sample_tools() {
  static const std::vector<Tool> tools = *read_tools(json::parse(R"([
      {"function": {"name": "f", "parameters": {"type": "object", "properties": {
        "s": {"type": "string"}, "n": {"type": "integer"}, "o": {"type": ["object", "null"]},
        "a": {"anyOf": [{"type": "boolean"}, {"enum": ["x", 1]}]}}}}}])"));
  return tools;
}

Parsed parse(ToolStyle style, bool complete, std::string_view text, std::size_t size) {
  ToolCallParser parser(style, sample_tools(), "id");
  Parsed out;
  for (std::size_t at = 0; at < text.size(); at += size)
    out.take(parser.push(text.substr(at, size)));
  out.take(parser.finish(complete));
  return out;
}

void read_output(ToolStyle style, bool complete, std::string_view text) {
  const Parsed whole = parse(style, complete, text, std::max<std::size_t>(text.size(), 1));
  for (const std::size_t size : {1, 2, 7}) require(parse(style, complete, text, size) == whole);
  require(whole.errors <= 1);
  if (!complete || whole.errors > 0) return;
  // JSON's strings must be UTF-8 for its parser.
  for (const ToolCallDelta& call : whole.calls) {
    json::error_code error;
    json::parse_options any;
    any.allow_invalid_utf8 = true;
    any.max_depth = 256;
    require(json::parse(call.arguments, error, {}, any).is_object());
  }
}

void read_request(std::string_view text) {
  json::error_code error;
  const json::value value = json::parse(text, error);
  if (error) return;
  if (const auto messages = read_messages(value); messages.ok())
    require(read_messages(*messages).ok());
  if (const auto tools = read_tools(value); tools.ok())
    for (const ToolStyle style : {ToolStyle::kHermes, ToolStyle::kLlama, ToolStyle::kFunctionTags})
      for (const auto& call : tool_grammar(style, *tools).calls)
        require(call.begin.find(call.name) != std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 'h':
    case 'H': read_output(ToolStyle::kHermes, data[0] == 'H', text); break;
    case 'l':
    case 'L': read_output(ToolStyle::kLlama, data[0] == 'L', text); break;
    case 't':
    case 'T': read_output(ToolStyle::kFunctionTags, data[0] == 'T', text); break;
    case 'r': read_request(text); break;
    default: break;
  }
  return 0;
}
