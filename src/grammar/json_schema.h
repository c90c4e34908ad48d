// JSON Schema to grammar.
#pragma once

#include <boost/json/value.hpp>
#include <string_view>

#include "base/status.h"
#include "grammar/grammar.h"
#include "grammar/json_text.h"
#include "grammar/schema_work.h"

namespace strata {

// Adds a JSON value that `schema` describes; schemas of one grammar share `json`. Every text is
// valid by the schema; not every valid one is a text: white space is bounded (JsonText), members
// come in the order of `properties`, and
//   - members that `properties` does not name are left out unless additionalProperties allows them;
//   - a schema without `type` is for the types that its keywords speak of, or for any;
//   - oneOf is read as anyOf;
//   - numbers with a bound are decimals without an exponent;
//   - of `format`, the names of pattern_of_format and, for integers, those of sizes are kept.
// Read are type, enum, const, $ref into the same schema, allOf (as one schema, where that is
// possible), anyOf, oneOf, and the keywords of objects, arrays, strings and numbers but contains
// and those that depend on other members. A keyword that constrains and is not read is
// kUnsupported, a wrong one kInvalidArgument; both name its place, `where` and a JSON pointer. What
// is read but cannot always be held (uniqueItems, multipleOf, other formats, patterns with more
// than grammars can say, several of these and lengths for one string) is left out with a note in
// `notes`, or without those kUnsupported too. Annotations, unknown keywords and those that are null
// change nothing.
Result<GrammarBuilder::Id> add_json_schema(JsonText& json, const boost::json::value& schema,
                                           std::string_view where, SchemaWork& work,
                                           SchemaNotes* notes = nullptr);
Result<GrammarBuilder::Id> add_json_schema(JsonText& json, const boost::json::value& schema,
                                           std::string_view where = "the schema");

// The objects among the values that `schema` describes. An error where there are none.
Result<GrammarBuilder::Id> add_json_objects(JsonText& json, const boost::json::value& schema,
                                            std::string_view where, SchemaWork& work,
                                            SchemaNotes* notes = nullptr);

// Answers that are a value by the schema, or any object.
Result<Grammar> json_schema_grammar(const boost::json::value& schema);
Result<Grammar> json_object_grammar();

}  // namespace strata
