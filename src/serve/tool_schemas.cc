#include "serve/tool_schemas.h"

#include <fmt/format.h>

#include "grammar/json_schema.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

const json::object* member_object(const json::value& value, std::string_view key) {
  const json::object* const object = value.if_object();
  const json::value* const member = object == nullptr ? nullptr : object->if_contains(key);
  return member == nullptr ? nullptr : member->if_object();
}

}  // namespace

std::optional<Refusal> check_tool_schemas(Fields& fields) {
  const json::value* const tools = fields.value("tools");
  if (tools == nullptr || !tools->is_array()) return std::nullopt;
  GrammarBuilder builder;
  JsonText text(builder);
  SchemaWork work;
  SchemaNotes notes;  // to read on behind what cannot be held
  const json::array& list = tools->get_array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const json::object* const function = member_object(list[i], "function");
    const json::value* const schema =
        function == nullptr ? nullptr : function->if_contains("parameters");
    if (schema == nullptr || !schema->is_object()) continue;
    const auto read = add_json_schema(
        text, *schema, fmt::format("tools[{}].function.parameters", i), work, &notes);
    const StatusCode code = read.status().code();
    if (code == StatusCode::kInvalidArgument || code == StatusCode::kResourceExhausted)
      return wrong_field("tools", read.status());
  }
  if (!builder.status().ok()) return wrong_field("tools", builder.status());
  return std::nullopt;
}

}  // namespace strata::serve
