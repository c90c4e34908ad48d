#include "grammar/json_schema.h"

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <string>
#include <vector>

#include "base/printable.h"
#include "grammar/schema_reader.h"

namespace strata {
namespace {

using boost::json::object;
using boost::json::value;
using Id = GrammarBuilder::Id;
using RuleId = GrammarBuilder::RuleId;

constexpr std::size_t kSchemaSteps = 8;  // to read the least of them

}  // namespace

Result<Id> SchemaReader::read_part(const value& schema, const std::string& path) {
  if (schema.is_bool() && !schema.get_bool()) return wrong(path, "false allows no value at all");
  STRATA_ASSIGN(const Id id, read_schema(schema, path, 0));
  while (!pending_.empty()) {
    const auto [pointer, rule] = pending_.back();
    pending_.pop_back();
    STRATA_ASSIGN(const value* const behind, resolve(pointer, pointer));
    STRATA_ASSIGN(const Id expression, read_schema(*behind, pointer, 0));
    builder_.define(rule, expression);
  }
  STRATA_TRY(check_room(path));
  return id;
}

Result<Id> SchemaReader::read_objects() {
  STRATA_ASSIGN(const std::vector<object> schemas, objects());
  std::vector<Id> ways;
  for (const object& schema : schemas) {
    STRATA_ASSIGN(const Id way, read_part(schema, "#"));
    ways.push_back(way);
  }
  return builder_.choice(std::move(ways));
}

Result<Id> SchemaReader::read_schema(const value& schema, const std::string& path,
                                     std::size_t nesting) {
  if (nesting > kMostNesting)
    return resource_exhausted("{}, {}: schemas nest deeper than {}", where_, path, kMostNesting);
  STRATA_TRY(spend(kSchemaSteps + (schema.is_object() ? schema.get_object().size() : 0), path));
  STRATA_TRY(check_room(path));
  if (schema.is_bool()) return schema.get_bool() ? json_.value() : builder_.choice({});
  if (!schema.is_object()) return wrong(path, "a schema must be an object, true or false");
  // In rules of their own, so that expressions nest no deeper than one schema.
  STRATA_ASSIGN(const Id id, read_object(schema.get_object(), path, nesting));
  const RuleId rule = builder_.add_rule(fmt::format("{}, {}", where_, path));
  builder_.define(rule, id);
  return builder_.rule(rule);
}

Result<Id> SchemaReader::read_object(const object& schema, const std::string& path,
                                     std::size_t nesting) {
  STRATA_TRY(check_keywords(schema, path));
  if (const value* const ref = find_key(schema, "$ref"))
    return read_reference(schema, *ref, path, nesting);
  if (const value* const all = find_key(schema, "allOf"))
    return read_all(schema, *all, path, nesting);
  for (const char* key : {"anyOf", "oneOf"})
    if (const value* const any = find_key(schema, key))
      return read_any(schema, *any, key, path, nesting);
  if (find_key(schema, "const") != nullptr || find_key(schema, "enum") != nullptr)
    return read_constants(schema, path);
  STRATA_ASSIGN(const std::vector<std::string> types, types_of(schema, path));
  if (types.empty()) return json_.value();
  std::vector<Id> ways;
  for (const std::string& type : types) {
    STRATA_ASSIGN(const Id way, read_type(schema, type, path, nesting));
    ways.push_back(way);
  }
  return builder_.choice(std::move(ways));
}

Result<Id> SchemaReader::read_type(const object& schema, std::string_view type,
                                   const std::string& path, std::size_t nesting) {
  if (type == "object") return read_members(schema, path, nesting);
  if (type == "array") return read_array(schema, path, nesting);
  if (type == "string") return read_string(schema, path);
  if (type == "number") return read_number(schema, path);
  if (type == "integer") return read_integer(schema, path);
  return type == "boolean" ? json_.boolean() : json_.null();
}

Result<Id> SchemaReader::read_reference(const object& schema, const value& ref,
                                        const std::string& path, std::size_t nesting) {
  if (!ref.is_string()) return wrong(path + "/$ref", "expected a string");
  const std::string pointer(view(ref.get_string()));
  STRATA_ASSIGN(const value* const target, resolve(pointer, path + "/$ref"));
  if (constrains(schema, "$ref")) {
    STRATA_ASSIGN(object rest, without(schema, "$ref", path));
    return read_merged(std::move(rest), *target, path + "/$ref", path, nesting);
  }
  auto [known, is_new] = references_.try_emplace(pointer, 0);
  if (is_new) {
    known->second = builder_.add_rule(fmt::format("{}, {}", where_, printable(pointer, 200)));
    pending_.emplace_back(pointer, known->second);
  }
  return builder_.rule(known->second);
}

Result<Id> SchemaReader::read_merged(object base, const value& part, const std::string& part_path,
                                     const std::string& path, std::size_t nesting) {
  STRATA_ASSIGN(const object both, merged(std::move(base), part, part_path));
  return read_schema(both, path, nesting + 1);
}

Result<Id> SchemaReader::read_all(const object& schema, const value& all, const std::string& path,
                                  std::size_t nesting) {
  const auto* list = all.if_array();
  if (list == nullptr || list->empty()) return wrong(path + "/allOf", "expected a list of schemas");
  STRATA_ASSIGN(object out, without(schema, "allOf", path));
  for (std::size_t i = 0; i < list->size(); ++i) {
    STRATA_ASSIGN(out, merged(std::move(out), (*list)[i], fmt::format("{}/allOf/{}", path, i)));
  }
  return read_schema(out, path, nesting + 1);
}

Result<Id> SchemaReader::read_any(const object& schema, const value& any, std::string_view key,
                                  const std::string& path, std::size_t nesting) {
  const std::string key_path = fmt::format("{}/{}", path, key);
  const auto* list = any.if_array();
  if (list == nullptr || list->empty()) return wrong(key_path, "expected a list of schemas");
  const bool alone = !constrains(schema, key);
  std::vector<Id> ways;
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string part = fmt::format("{}/{}", key_path, i);
    object rest;
    if (!alone) {
      STRATA_ASSIGN(rest, without(schema, key, path));
    }
    STRATA_ASSIGN(const Id way,
                  alone ? read_schema((*list)[i], part, nesting + 1)
                        : read_merged(std::move(rest), (*list)[i], part, part, nesting));
    ways.push_back(way);
  }
  return builder_.choice(std::move(ways));
}

Result<Id> add_json_schema(JsonText& json, const value& schema, std::string_view where,
                           SchemaWork& work, SchemaNotes* notes) {
  return SchemaReader(json, schema, where, work, notes).read_part(schema, "#");
}

Result<Id> add_json_schema(JsonText& json, const value& schema, std::string_view where) {
  SchemaWork work;
  return add_json_schema(json, schema, where, work);
}

Result<Id> add_json_objects(JsonText& json, const value& schema, std::string_view where,
                            SchemaWork& work, SchemaNotes* notes) {
  return SchemaReader(json, schema, where, work, notes).read_objects();
}

Result<Grammar> json_schema_grammar(const value& schema) {
  GrammarBuilder builder;
  JsonText json(builder);
  STRATA_ASSIGN(const Id answer, add_json_schema(json, schema));
  const RuleId root = builder.add_rule("the schema");
  builder.define(root, builder.sequence({json.before_answer(), answer}));
  return builder.compile(root);
}

Result<Grammar> json_object_grammar() {
  GrammarBuilder builder;
  JsonText json(builder);
  const RuleId root = builder.add_rule("any object");
  builder.define(root, builder.sequence({json.before_answer(), json.object()}));
  return builder.compile(root);
}

}  // namespace strata
