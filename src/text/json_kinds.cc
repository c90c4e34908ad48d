#include "text/json_kinds.h"

#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <string_view>
#include <utility>

namespace strata {
namespace {

namespace json = boost::json;

constexpr int kMaxNesting = 16;  // of anyOf in anyOf

unsigned kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return JsonKinds::kNull;
    case json::kind::bool_: return JsonKinds::kBoolean;
    case json::kind::string: return JsonKinds::kString;
    case json::kind::array: return JsonKinds::kArray;
    case json::kind::object: return JsonKinds::kObject;
    default: return JsonKinds::kNumber;
  }
}

unsigned kind_named(const json::value& name) {
  constexpr std::array<std::pair<std::string_view, unsigned>, 7> kNames = {{
      {"string", JsonKinds::kString},
      {"number", JsonKinds::kNumber},
      {"integer", JsonKinds::kNumber},
      {"boolean", JsonKinds::kBoolean},
      {"null", JsonKinds::kNull},
      {"object", JsonKinds::kObject},
      {"array", JsonKinds::kArray},
  }};
  if (!name.is_string()) return JsonKinds::kAny;
  for (const auto& [text, kind] : kNames)
    if (name.get_string() == text) return kind;
  return JsonKinds::kAny;
}

// The kinds of all items of a list; kAny for what is no list or empty.
template <typename Kind>
unsigned any_of(const json::value& list, const Kind& kind) {
  unsigned kinds = 0;
  if (const json::array* items = list.if_array(); items != nullptr)
    for (const json::value& item : *items) kinds |= kind(item);
  return kinds == 0 ? JsonKinds::kAny : kinds;
}

unsigned kinds_within(const json::value& schema, int nesting) {
  const json::object* fields = schema.if_object();
  if (fields == nullptr || nesting == kMaxNesting) return JsonKinds::kAny;
  const auto inner = [&](const json::value& item) { return kinds_within(item, nesting + 1); };
  unsigned kinds = JsonKinds::kAny;
  if (const json::value* type = fields->if_contains("type"); type != nullptr)
    kinds &= type->is_array() ? any_of(*type, kind_named) : kind_named(*type);
  if (const json::value* values = fields->if_contains("enum"); values != nullptr)
    kinds &= any_of(*values, kind_of);
  if (const json::value* value = fields->if_contains("const"); value != nullptr)
    kinds &= kind_of(*value);
  for (const char* key : {"anyOf", "oneOf"})
    if (const json::value* schemas = fields->if_contains(key); schemas != nullptr)
      kinds &= any_of(*schemas, inner);
  return kinds == 0 ? JsonKinds::kAny : kinds;
}

}  // namespace

unsigned json_kinds(const json::value& schema) { return kinds_within(schema, 0); }

unsigned json_kind_at(char first) {
  switch (first) {
    case '"': return JsonKinds::kString;
    case '{': return JsonKinds::kObject;
    case '[': return JsonKinds::kArray;
    case 't':
    case 'f': return JsonKinds::kBoolean;
    case 'n': return JsonKinds::kNull;
    default: return JsonKinds::kNumber;
  }
}

}  // namespace strata
