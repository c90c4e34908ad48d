#include "serve/tagged_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <set>
#include <unordered_set>
#include <utility>

#include "base/printable.h"
#include "grammar/schema_document.h"
#include "text/json_kinds.h"
#include "text/json_scanner.h"
#include "text/tagged_call.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

constexpr std::size_t kArgumentSteps = 8;  // of work, to plan the least argument
constexpr std::size_t kKindSteps = 4;      // of a KindReader, that are one of work

bool has_keyword_of(const json::object& schema, KeywordUse use) {
  return std::ranges::any_of(schema, [&](const auto& member) {
    return use_of_keyword(view(member.key())) == use &&
           !is_absent(view(member.key()), member.value());
  });
}

bool lists_values(const json::object& schema) {
  return find_key(schema, "enum") != nullptr || find_key(schema, "const") != nullptr;
}

// The values that `enum` and `const` leave, of `types`.
json::array listed_values(const json::object& schema, const std::vector<std::string>& types) {
  const json::value* const constant = find_key(schema, "const");
  const json::value* const listed = find_key(schema, "enum");
  json::array out;
  if (constant != nullptr) out.push_back(*constant);
  if (constant == nullptr && listed->is_array()) out = listed->get_array();
  json::array kept;
  for (const json::value& each : out) {
    const bool typed = types.empty() || std::ranges::any_of(types, [&](const std::string& type) {
                         return is_of_type(each, type);
                       });
    const bool in_list = constant == nullptr || listed == nullptr || !listed->is_array() ||
                         std::ranges::find(listed->get_array(), each) != listed->get_array().end();
    if (typed && in_list) kept.push_back(each);
  }
  return kept;
}

// The kinds of values of which a schema without a list of values allows all.
unsigned whole_kinds(const json::object& schema, const std::vector<std::string>& types) {
  const std::pair<std::string_view, std::pair<unsigned, KeywordUse>> kinds[] = {
      {"number", {JsonKinds::kNumber, KeywordUse::kNumber}},
      {"integer", {JsonKinds::kInteger, KeywordUse::kNumber}},
      {"boolean", {JsonKinds::kBoolean, KeywordUse::kAny}},
      {"null", {JsonKinds::kNull, KeywordUse::kAny}},
      {"object", {JsonKinds::kObject, KeywordUse::kObject}},
      {"array", {JsonKinds::kArray, KeywordUse::kArray}}};
  unsigned out = 0;
  for (const auto& [type, kind] : kinds) {
    const bool free = kind.second == KeywordUse::kAny || !has_keyword_of(schema, kind.second);
    if (free && (types.empty() || std::ranges::find(types, type) != types.end())) out |= kind.first;
  }
  return out;
}

class ToolPlanner {
 public:
  // REQUIRES: `parameters` are an object.
  ToolPlanner(std::string_view name, const json::value& parameters, SchemaWork& work)
      : name_(name),
        document_(parameters, fmt::format("the tool {}", name), work),
        kinds_(parameters.get_object()) {}

  Result<TaggedTool> plan();

 private:
  Result<std::optional<TaggedArguments>> way(const json::object& schema);
  Result<TaggedArgument> argument(std::optional<std::string_view> key, const json::value& schema);
  // One of the alternatives that a value has; returns the kinds that it allows in full.
  Result<unsigned> take_alternative(const json::object& schema, unsigned kinds,
                                    TaggedArgument& out);
  void take_texts(const json::array& values, unsigned kinds, TaggedArgument& out);
  // Returns whether calls are possible without what cannot be written.
  bool leave_out(std::string_view key, bool required, std::string_view why);
  void note(std::string text) {
    if (noted_.insert(text).second) out_.notes.push_back(std::move(text));
  }
  static std::string path_of(std::string_view key) {
    return fmt::format("#/properties/{}", escaped_step(key));
  }

  std::string name_;
  SchemaDocument document_;
  KindReader kinds_;
  std::set<std::string> noted_;
  TaggedTool out_;
  std::string trouble_;  // why there is no call, if so
};

Result<TaggedTool> ToolPlanner::plan() {
  STRATA_ASSIGN(const std::vector<json::object> schemas, document_.objects());
  for (const json::object& schema : schemas) {
    STRATA_ASSIGN(auto one, way(schema));
    if (one) out_.ways.push_back(std::move(*one));
  }
  if (out_.ways.empty())
    return unsupported("the tool {}: {} cannot be written in the form of the model's calls", name_,
                       trouble_);
  std::ranges::sort(out_.names);
  out_.names.erase(std::unique(out_.names.begin(), out_.names.end()), out_.names.end());
  return std::move(out_);
}

bool ToolPlanner::leave_out(std::string_view key, bool required, std::string_view why) {
  if (required)
    trouble_ = fmt::format("{} of \"{}\"", why, printable(key, 100));
  else
    note(fmt::format("calls of the tool {} do without \"{}\": {} cannot be written in their form",
                     name_, key, why));
  return !required;
}

// Nothing where a call so cannot be written.
Result<std::optional<TaggedArguments>> ToolPlanner::way(const json::object& schema) {
  STRATA_TRY(document_.check_keywords(schema, "#"));
  for (const char* key :
       {"propertyNames", "patternProperties", "minProperties", "maxProperties", "enum", "const"})
    if (find_key(schema, key) != nullptr)
      return document_.no_support(fmt::format("#/{}", key), "this keyword for all arguments");
  STRATA_ASSIGN(const std::vector<std::string> required, document_.required_names(schema, "#"));
  std::unordered_set<std::string_view> missing(required.begin(), required.end());
  TaggedArguments out;
  const json::value* const additional = find_key(schema, "additionalProperties");
  const bool closed = additional != nullptr && *additional == json::value(false);
  bool possible = true;
  const auto add = [&](std::string_view key, const json::value& content) -> Status {
    const bool needed = missing.erase(key) > 0;
    out_.names.emplace_back(key);
    if (!is_tagged_key(key)) {
      possible = leave_out(key, needed, "the name") && possible;
      return {};
    }
    STRATA_ASSIGN(TaggedArgument one, argument(key, content));
    one.required = needed;
    if (one.has_value())
      out.named.push_back(std::move(one));
    else
      possible = leave_out(key, needed, "any value") && possible;
    return {};
  };
  if (const json::value* const properties = find_key(schema, "properties")) {
    if (!properties->is_object())
      return document_.wrong("#/properties", "expected an object of schemas");
    for (const auto& [key, content] : properties->get_object()) STRATA_TRY(add(view(key), content));
  }
  const json::value any(true);
  for (const std::string& key : required) {
    if (!missing.contains(key)) continue;
    if (closed)
      return document_.wrong(
          "#/required", fmt::format("\"{}\" is not among the properties", printable(key, 100)));
    STRATA_TRY(add(key, additional == nullptr ? any : *additional));
  }
  if (!possible) return std::optional<TaggedArguments>();
  if (additional != nullptr && !closed) {
    STRATA_ASSIGN(out.others, argument(std::nullopt, *additional));
    if (!out.others->has_value()) out.others.reset();
  }
  return std::optional(std::move(out));
}

Result<TaggedArgument> ToolPlanner::argument(std::optional<std::string_view> key,
                                             const json::value& schema) {
  TaggedArgument out;
  out.key = key.value_or("additionalProperties");
  out.path = key ? path_of(*key) : "#/additionalProperties";
  const std::size_t steps = kinds_.steps();
  const unsigned kinds = kinds_.member_kinds(key), own = kinds_.kinds(schema);
  STRATA_TRY(document_.spend(kArgumentSteps + (kinds_.steps() - steps) / kKindSteps, out.path));
  // Whoever reads a call has the same limit, and looks at no more.
  if (kinds_.steps() > KindReader::kMostSteps / 2)
    return resource_exhausted("the tool {}: there is too much to look through", name_);
  if ((own & ~kinds) != 0)
    return document_.no_support(out.path, "an argument of other kinds elsewhere");
  if ((kinds & JsonKinds::kString) == 0) {
    out.schemas.push_back(schema);
    return out;
  }
  STRATA_ASSIGN(const std::vector<json::object> schemas, document_.alternatives(schema, out.path));
  unsigned whole = 0;
  for (const json::object& each : schemas) {
    STRATA_TRY(document_.check_keywords(each, out.path));
    STRATA_ASSIGN(const unsigned allowed, take_alternative(each, kinds, out));
    whole |= allowed;
  }
  if (out.free_text) {
    out.no_json = kinds & ~(whole | JsonKinds::kString);
    if (out.no_json == 0) out.schemas.clear();
  }
  return out;
}

Result<unsigned> ToolPlanner::take_alternative(const json::object& schema, unsigned kinds,
                                               TaggedArgument& out) {
  for (const char* const key : {"pattern", "format", "minLength", "maxLength"})
    if (find_key(schema, key) != nullptr)
      note(fmt::format("calls of the tool {} are not held to the `{}` of {}", name_, key, out.key));
  STRATA_ASSIGN(std::vector<std::string> types, document_.types_of(schema, out.path));
  if (lists_values(schema)) {
    if (find_key(schema, "type") == nullptr) types.clear();
    const json::array values = listed_values(schema, types);
    take_texts(values, kinds, out);
    json::array others;
    unsigned whole = 0;
    for (const json::value& each : values) {
      if (each.is_string()) continue;
      if (each.is_null()) whole |= JsonKinds::kNull;
      if (each.is_bool()) whole |= each.get_bool() ? JsonKinds::kTrue : JsonKinds::kFalse;
      others.push_back(each);
    }
    if (!others.empty()) out.schemas.emplace_back(json::object{{"enum", std::move(others)}});
    return whole;
  }
  const unsigned whole = whole_kinds(schema, types);
  if (types.empty()) types = {"object", "array", "string", "number", "boolean", "null"};
  if (std::erase(types, "string") > 0) out.free_text = true;
  if (types.empty()) return whole;
  json::object rest = schema;
  json::array names;
  for (const std::string& type : types) names.emplace_back(json::string(type));
  rest["type"] = std::move(names);
  out.schemas.emplace_back(std::move(rest));
  return whole;
}

void ToolPlanner::take_texts(const json::array& values, unsigned kinds, TaggedArgument& out) {
  for (const json::value& each : values) {
    if (!each.is_string()) continue;
    const std::string text(view(each.get_string()));
    if (is_tagged_text(text) && tagged_value(text, kinds) == json_quoted(text))
      out.texts.push_back(text);
    else
      note(fmt::format("calls of the tool {} cannot give some values of {}", name_, out.key));
  }
}

}  // namespace

Result<TaggedTool> tagged_tool(std::string_view name, const json::value& parameters,
                               SchemaWork& work) {
  return ToolPlanner(name, parameters, work).plan();
}

}  // namespace strata::serve
