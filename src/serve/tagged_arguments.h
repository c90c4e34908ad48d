// Arguments of calls that are written between tags (text/tagged_call.h), by the schema of a tool.
#pragma once

#include <boost/json/value.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/json_text.h"
#include "grammar/schema_work.h"

namespace strata::serve {

struct TaggedArgument {
  std::string key;
  std::string path;  // of its schema, a JSON pointer
  bool required = false;
  // A value is text, which is not a value of the kinds `no_json` (JsonKinds), one of `texts`, or
  // JSON by one of `schemas`.
  bool free_text = false;
  unsigned no_json = 0;
  std::vector<std::string> texts;
  std::vector<boost::json::value> schemas;

  bool has_value() const { return free_text || !texts.empty() || !schemas.empty(); }
};

// All arguments, in this order.
struct TaggedArguments {
  std::vector<TaggedArgument> named;
  std::optional<TaggedArgument> others;  // with other names, any number of them
};

struct TaggedTool {
  std::vector<TaggedArguments> ways;
  std::vector<std::string> names;  // of all arguments
  std::vector<std::string> notes;  // what of the schema calls do not keep to or cannot give
};

// What is read by ToolCallParser as values that `parameters` describes, but for the notes. An error
// where the schema has what cannot be held, or where calls cannot be written so. REQUIRES:
// `parameters` are an object.
Result<TaggedTool> tagged_tool(std::string_view name, const boost::json::value& parameters,
                               SchemaWork& work);

// The text of the arguments. What calls do not keep to is noted in `notes`, if there are any.
Result<GrammarBuilder::Id> add_tagged_arguments(JsonText& text, std::string_view name,
                                                const boost::json::value& parameters,
                                                SchemaWork& work, SchemaNotes* notes = nullptr);

}  // namespace strata::serve
