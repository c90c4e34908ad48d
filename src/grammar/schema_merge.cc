#include "grammar/schema_merge.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cmath>
#include <unordered_set>
#include <utility>

#include "base/printable.h"

namespace strata {
namespace {

using boost::json::array;
using boost::json::object;
using boost::json::value;

// Ascending.
constexpr auto kKeywords = std::to_array<std::pair<std::string_view, KeywordUse>>({
    {"$dynamicRef", KeywordUse::kUnsupported},
    {"$recursiveRef", KeywordUse::kUnsupported},
    {"$ref", KeywordUse::kAny},
    {"additionalItems", KeywordUse::kArray},
    {"additionalProperties", KeywordUse::kObject},
    {"allOf", KeywordUse::kAny},
    {"anyOf", KeywordUse::kAny},
    {"const", KeywordUse::kAny},
    {"contains", KeywordUse::kUnsupported},
    {"dependencies", KeywordUse::kUnsupported},
    {"dependentRequired", KeywordUse::kUnsupported},
    {"dependentSchemas", KeywordUse::kUnsupported},
    {"enum", KeywordUse::kAny},
    {"exclusiveMaximum", KeywordUse::kNumber},
    {"exclusiveMinimum", KeywordUse::kNumber},
    {"format", KeywordUse::kString},
    {"if", KeywordUse::kUnsupported},
    {"items", KeywordUse::kArray},
    {"maxItems", KeywordUse::kArray},
    {"maxLength", KeywordUse::kString},
    {"maxProperties", KeywordUse::kObject},
    {"maximum", KeywordUse::kNumber},
    {"minItems", KeywordUse::kArray},
    {"minLength", KeywordUse::kString},
    {"minProperties", KeywordUse::kObject},
    {"minimum", KeywordUse::kNumber},
    {"multipleOf", KeywordUse::kNumber},
    {"not", KeywordUse::kUnsupported},
    {"oneOf", KeywordUse::kAny},
    {"pattern", KeywordUse::kString},
    {"patternProperties", KeywordUse::kObject},
    {"prefixItems", KeywordUse::kArray},
    {"properties", KeywordUse::kObject},
    {"propertyNames", KeywordUse::kObject},
    {"required", KeywordUse::kObject},
    {"type", KeywordUse::kAny},
    {"unevaluatedItems", KeywordUse::kUnsupported},
    {"unevaluatedProperties", KeywordUse::kUnsupported},
    {"uniqueItems", KeywordUse::kArray},
});

array as_list(const value& one_or_list) {
  return one_or_list.is_array() ? one_or_list.get_array() : array{one_or_list};
}

bool holds(const array& list, const value& wanted) {
  return std::ranges::find(list, wanted) != list.end();
}

// The items of `a` that are in `b` too, or, where `all`, those of both.
array joined_lists(const array& a, const array& b, bool all) {
  struct Same {
    bool operator()(const value* x, const value* y) const { return *x == *y; }
  };
  struct Hash {
    std::size_t operator()(const value* x) const { return std::hash<value>()(*x); }
  };
  std::unordered_set<const value*, Hash, Same> others;
  for (const value& item : b) others.insert(&item);
  array out;
  for (const value& item : a)
    if (all || others.contains(&item)) out.push_back(item);
  if (!all) return out;
  for (const value& item : a) others.erase(&item);
  for (const value& item : b)
    if (others.contains(&item)) out.push_back(item);
  return out;
}

value common_types(const value& a, const value& b) {
  const array left = as_list(a), right = as_list(b);
  array out;
  for (const value& type : left) {
    const bool integer_of_number = type == value("integer") && holds(right, "number");
    if (holds(right, type) || integer_of_number)
      out.push_back(type);
    else if (type == value("number") && holds(right, "integer") && !holds(left, "integer"))
      out.push_back("integer");
  }
  return out;
}

// Members that are described twice must be both.
value both_properties(const value& a, const value& b) {
  if (!a.is_object() || !b.is_object()) return a.is_object() ? b : a;  // the wrong one
  object out = a.get_object();
  for (const auto& [key, schema] : b.get_object()) {
    value* const there = out.if_contains(key);
    if (there == nullptr)
      out[key] = schema;
    else if (*there != schema)
      *there = object{{"allOf", array{*there, schema}}};
  }
  return out;
}

bool less(const value& a, const value& b) {
  return a.is_number() && b.is_number() && a.to_number<double>() < b.to_number<double>();
}

// Whether one side says that members of the other are not to be.
bool closes(const object& a, const object& b) {
  const value* const additional = find_key(a, "additionalProperties");
  const value* const other = find_key(b, "properties");
  if (additional == nullptr || *additional == value(true) || other == nullptr) return false;
  const value* const own = find_key(a, "properties");
  if (!other->is_object()) return false;
  return std::ranges::any_of(other->get_object(), [&](const auto& member) {
    return own == nullptr || !own->is_object() || !own->get_object().contains(member.key());
  });
}

// Of a keyword whose values cannot be joined: {"allOf": [..]}, for one who reads them one by one.
value all_of(const value& a, const value& b) {
  array out;
  for (const value* const each : {&a, &b}) {
    const object* const several = each->if_object();
    const value* const list = several == nullptr ? nullptr : find_key(*several, "allOf");
    if (list != nullptr && list->is_array())
      out.insert(out.end(), list->get_array().begin(), list->get_array().end());
    else
      out.push_back(*each);
  }
  return object{{"allOf", std::move(out)}};
}

// The value of a keyword that both schemas have, differently. Null: no support.
value both(std::string_view key, const value& a, const value& b) {
  if (key == "type") return common_types(a, b);
  if (key == "properties") return both_properties(a, b);
  if (key == "items") return object{{"allOf", array{a, b}}};
  if (key == "required" || key == "enum") {
    if (!a.is_array() || !b.is_array()) return a.is_array() ? b : a;
    return joined_lists(a.get_array(), b.get_array(), key == "required");
  }
  if (key.starts_with("min") || key == "exclusiveMinimum") return less(a, b) ? b : a;
  if (key.starts_with("max") || key == "exclusiveMaximum") return less(a, b) ? a : b;
  if (key == "pattern" || key == "format" || key == "multipleOf") return all_of(a, b);
  if (key == "uniqueItems") return a == value(true) || b == value(true);
  if (key == "additionalProperties" && (a == value(true) || b == value(true)))
    return a == value(true) ? b : a;
  if (key == "additionalProperties" && (a == value(false) || b == value(false))) return false;
  return nullptr;
}

}  // namespace

std::string escaped_step(std::string_view key) {
  constexpr std::size_t kShown = 100;
  std::string out;
  for (const char c : key.substr(0, kShown + 4))  // a character more
    if (c == '~' || c == '/')
      out += c == '~' ? "~0" : "~1";
    else
      out += c;
  return printable(out, kShown);
}

bool is_of_type(const value& v, std::string_view type) {
  if (type == "integer")
    return v.is_int64() || v.is_uint64() ||
           (v.is_double() && std::trunc(v.get_double()) == v.get_double());
  if (type == "number") return v.is_number();
  if (type == "string") return v.is_string();
  if (type == "boolean") return v.is_bool();
  if (type == "null") return v.is_null();
  if (type == "array") return v.is_array();
  return type == "object" && v.is_object();
}

bool is_finite(const value& v) {
  if (v.is_double()) return std::isfinite(v.get_double());
  if (const auto* list = v.if_array()) return std::ranges::all_of(*list, is_finite);
  if (const auto* members = v.if_object())
    return std::ranges::all_of(*members, [](const auto& m) { return is_finite(m.value()); });
  return true;
}

KeywordUse use_of_keyword(std::string_view keyword) {
  constexpr auto kName = &std::pair<std::string_view, KeywordUse>::first;
  static_assert(std::ranges::is_sorted(kKeywords, {}, kName));
  const auto found = std::ranges::lower_bound(kKeywords, keyword, {}, kName);
  const bool known = found != kKeywords.end() && found->first == keyword;
  return known ? found->second : KeywordUse::kAnnotation;
}

bool constrains(const object& schema, std::string_view but) {
  return std::ranges::any_of(schema, [&](const auto& member) {
    const std::string_view key = view(member.key());
    return key != but && use_of_keyword(key) != KeywordUse::kAnnotation &&
           !is_absent(key, member.value());
  });
}

array values_of(const object& schema, std::string_view key) {
  const value* const given = find_key(schema, key);
  if (given == nullptr) return {};
  const object* const several = given->if_object();
  const value* const list = several == nullptr ? nullptr : find_key(*several, "allOf");
  return list != nullptr && list->is_array() ? list->get_array() : array{*given};
}

Result<object> merged_schema(object a, const object& b) {
  if (closes(a, b) || closes(b, a))
    return unsupported(
        "additionalProperties, where another part of allOf or anyOf describes more properties");
  for (const auto& [key, theirs] : b) {
    value* const ours = a.if_contains(key);
    if (is_absent(view(key), theirs)) continue;
    if (ours == nullptr || is_absent(view(key), *ours)) {
      a[key] = theirs;
      continue;
    }
    const std::string_view name(key.data(), key.size());
    if (*ours == theirs || use_of_keyword(name) == KeywordUse::kAnnotation) continue;
    value joined = both(name, *ours, theirs);
    if (joined.is_null())
      return unsupported("{}, where another part of allOf or anyOf has a different one", name);
    *ours = std::move(joined);
  }
  return a;
}

}  // namespace strata
