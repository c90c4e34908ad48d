#include "serve/chat_fields.h"

#include <fmt/format.h>

#include "grammar/json_schema.h"
#include "text/messages.h"

namespace strata::serve {
namespace {

constexpr std::size_t kMostStops = 64;
// Every choice of an answer has tables of several times these sizes.
constexpr std::size_t kMostStopBytes = 1024;
constexpr std::size_t kMostBytesOfStops = 4096;  // together

constexpr Shape kCalledFunction{{{"name"}, {"arguments"}}, true};
constexpr Shape kCall{{{"id"}, {"type"}, {"index"}, {"function", &kCalledFunction}}, true};
constexpr Shape kPart{{{"type"}, {"text"}}};
// Of both dialects; besides, what answers have that clients send back.
constexpr Shape kMessage{{{"role"},
                          {"content", &kPart},
                          {"name"},
                          {"tool_calls", &kCall},
                          {"tool_call_id"},
                          {"tool_name"},
                          {"reasoning_content"},
                          {"reasoning"},
                          {"thinking"},
                          {"images"},
                          {"audio"},
                          {"function_call"},
                          {"refusal"},
                          {"annotations"}},
                         true};
constexpr Shape kFunction{{{"name"}, {"description"}, {"parameters"}, {"strict"}}, true};
constexpr Shape kTool{{{"type"}, {"function", &kFunction}}, true};

}  // namespace

std::optional<Refusal> take_messages(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(generation.messages,
                fields.checked("messages", read_messages(*fields.value("messages"))));
  fields.look_into("messages", kMessage);
  return std::nullopt;
}

std::optional<Refusal> take_tools(Fields& fields, Generation& generation) {
  const boost::json::value* tools = fields.value("tools");
  if (tools == nullptr) return std::nullopt;
  STRATA_ASSIGN(generation.tools, fields.checked("tools", read_tools(*tools)));
  for (std::size_t i = 0; i < generation.tools.size(); ++i) {
    GrammarBuilder builder;
    JsonText text(builder);
    const auto schema = add_json_schema(text, generation.tools[i].parameters,
                                        fmt::format("tools[{}].function.parameters", i));
    if (schema.status().code() == StatusCode::kInvalidArgument)
      return wrong_field("tools", schema.status());
  }
  generation.tool_list = *tools;
  fields.look_into("tools", kTool);
  return std::nullopt;
}

std::optional<Refusal> take_stops(Fields& fields, Generation& generation) {
  STRATA_ASSIGN(generation.stops, fields.texts("stop", kMostStops));
  if (std::erase(generation.stops, "") > 0)
    fields.warn("stop", "holds an empty text, which has no effect");
  std::size_t bytes = 0;
  for (const std::string& stop : generation.stops) {
    if (stop.size() > kMostStopBytes)
      return fields.wrong("stop", fmt::format("holds one of more than {} bytes", kMostStopBytes));
    bytes += stop.size();
  }
  if (bytes > kMostBytesOfStops)
    return fields.wrong("stop", fmt::format("holds more than {} bytes", kMostBytesOfStops));
  return std::nullopt;
}

}  // namespace strata::serve
