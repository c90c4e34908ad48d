// Objects: their members in the order of the schema.
#include <algorithm>
#include <unordered_set>

#include "base/printable.h"
#include "grammar/json_schema.h"
#include "grammar/schema_reader.h"

namespace strata {
namespace {

using boost::json::object;
using boost::json::value;
using Id = GrammarBuilder::Id;

}  // namespace

Result<std::optional<Id>> SchemaReader::read_additional(const object& schema, bool otherwise,
                                                        const Path& path, std::size_t nesting) {
  const value* const given = find_key(schema, "additionalProperties");
  if (given == nullptr ? !otherwise : *given == value(false)) return std::optional<Id>();
  if (given == nullptr) return std::optional<Id>(json_.value());
  STRATA_ASSIGN(const Id id, read_schema(*given, path + "/additionalProperties", nesting + 1));
  return std::optional<Id>(id);
}

Result<Id> SchemaReader::read_members(const object& schema, const Path& path, std::size_t nesting) {
  STRATA_ASSIGN(const std::vector<std::string> required, required_names(schema, path));
  const value* const properties = find_key(schema, "properties");
  if (properties != nullptr && !properties->is_object())
    return wrong(path + "/properties", "expected an object of schemas");
  const bool named = properties != nullptr && !properties->get_object().empty();
  if (!named && required.empty()) return read_map(schema, path, nesting);
  for (const char* key : {"propertyNames", "patternProperties", "minProperties", "maxProperties"})
    if (find_key(schema, key) != nullptr)
      STRATA_TRY(leave_out(path, key,
                           fmt::format("{} beside properties or required is not supported", key)));
  std::vector<Member> members;
  std::unordered_set<std::string_view> missing(required.begin(), required.end());
  const auto add = [&](std::string_view name, Id content) {
    const bool needed = missing.erase(name) > 0;
    const Id key = json_.constant(value(boost::json::string(name.data(), name.size())));
    members.push_back({std::string(name), json_.member(key, content), needed});
  };
  if (named) {
    for (const auto& [key, member] : properties->get_object()) {
      const Path member_path = path + "/properties/" + escaped_step(view(key));
      STRATA_ASSIGN(const Id content, read_schema(member, member_path, nesting + 1));
      add(view(key), content);
    }
  }
  STRATA_ASSIGN(const std::optional<Id> additional, read_additional(schema, !named, path, nesting));
  const bool closed = find_key(schema, "additionalProperties") != nullptr && !additional;
  for (const std::string& name : required) {
    if (!missing.contains(name)) continue;
    STRATA_TRY(check_room(path));
    if (closed)
      return wrong(path + "/required",
                   fmt::format("\"{}\" is not among the properties", printable(name, 100)));
    add(name, additional ? *additional : json_.value());
  }
  STRATA_TRY(check_room(path));
  std::optional<Id> another;
  if (additional) {
    std::vector<std::u32string> names;
    names.reserve(members.size());
    for (const Member& member : members) names.push_back(characters_of(member.name));
    another = json_.member(json_.string_except(std::move(names)), *additional);
  }
  return members_in_order(members, another);
}

// Two rules per member: what may stand behind it, and what may come from it on.
Id SchemaReader::members_in_order(const std::vector<Member>& members, std::optional<Id> another) {
  const Id close = builder_.sequence({json_.space(), builder_.literal("}")});
  Id behind = close, from = builder_.choice({});
  if (another) {
    const Id more = builder_.sequence({json_.comma(), *another});
    behind = builder_.sequence({builder_.repeat(more, 0, kUnbounded), close});
    from = builder_.sequence({*another, behind});
  }
  bool may_close = true;
  const auto as_rule = [&](std::string_view what, const Member& member, Id expression) {
    const RuleId rule = builder_.add_rule(fmt::format("{} {}", what, printable(member.name, 100)));
    builder_.define(rule, expression);
    return builder_.rule(rule);
  };
  for (std::size_t i = members.size(); i-- > 0;) {
    const Member& member = members[i];
    std::vector<Id> ways = {builder_.sequence({member.text, behind})};
    if (!member.required) ways.push_back(from);
    from = as_rule("members from", member, builder_.choice(std::move(ways)));
    may_close = may_close && !member.required;
    std::vector<Id> next = {builder_.sequence({json_.comma(), from})};
    if (may_close) next.push_back(close);
    behind = as_rule("members before", member, builder_.choice(std::move(next)));
  }
  std::vector<Id> ways = {from};
  if (may_close) ways.push_back(builder_.literal("}"));
  return builder_.sequence(
      {builder_.literal("{"), json_.space(), builder_.choice(std::move(ways))});
}

// Members whose names match one of `patternProperties`, and no others.
Result<std::optional<Id>> SchemaReader::read_named_by_pattern(const object& schema,
                                                              const Path& path,
                                                              std::size_t nesting) {
  const std::string key = "patternProperties";
  const value* const given = find_key(schema, key);
  if (given == nullptr) return std::optional<Id>();
  if (!given->is_object()) return wrong(path + "/" + key, "expected an object of schemas");
  const object& patterns = given->get_object();
  if (patterns.empty()) return std::optional<Id>();
  // A name may match several, and would need a value for all.
  if (patterns.size() > 1 || find_key(schema, "propertyNames") != nullptr) {
    STRATA_TRY(leave_out(path, key, "more than one pattern for names is not supported"));
    return std::optional<Id>();
  }
  const auto& [pattern, content] = *patterns.begin();
  const Path place = fmt::format("{}/{}/{}", path, key, escaped_step(view(pattern)));
  STRATA_ASSIGN(const std::optional<Id> name, read_pattern(view(pattern), {}, key, path));
  STRATA_ASSIGN(const Id value, read_schema(content, place, nesting + 1));
  if (!name) return std::optional<Id>();
  return std::optional(json_.member(*name, value));
}

// An object without members of known names.
Result<Id> SchemaReader::read_map(const object& schema, const Path& path, std::size_t nesting) {
  STRATA_ASSIGN(const std::uint32_t min, count(schema, "minProperties", 0, path));
  STRATA_ASSIGN(std::uint32_t max, count(schema, "maxProperties", kUnbounded, path));
  if (min > max) return wrong(path, "minProperties is above maxProperties");
  // Nothing keeps a free name from coming twice.
  if (min > 1) return no_support(path + "/minProperties", "more than 1 here");
  STRATA_ASSIGN(std::optional<Id> content, read_additional(schema, true, path, nesting));
  const value* const names = find_key(schema, "propertyNames");
  STRATA_ASSIGN(const std::optional<Id> patterned, read_named_by_pattern(schema, path, nesting));
  const bool any = min == 0 && max == kUnbounded && names == nullptr && !patterned;
  if (any && find_key(schema, "additionalProperties") == nullptr) return json_.object();
  Id key = json_.string();
  if (names != nullptr) {
    if (!names->is_object()) return no_support(path + "/propertyNames", "true or false");
    object as_string = names->get_object();
    as_string.insert_or_assign("type", "string");
    STRATA_ASSIGN(key, read_schema(as_string, path + "/propertyNames", nesting + 1));
  }
  std::vector<Id> ways;
  const Id close = builder_.literal("}");
  if (min == 0) ways.push_back(close);
  if ((content || patterned) && max > 0) {
    const Id member = patterned ? *patterned : json_.member(key, *content);
    const Id more = builder_.repeat(builder_.sequence({json_.comma(), member}),
                                    min - std::min(min, 1u), max == kUnbounded ? max : max - 1);
    ways.push_back(builder_.sequence({member, more, json_.space(), close}));
  }
  return builder_.sequence(
      {builder_.literal("{"), json_.space(), builder_.choice(std::move(ways))});
}

}  // namespace strata
