#include "text/json_kinds.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cmath>
#include <utility>

namespace strata {
namespace {

namespace json = boost::json;
using Named = std::pair<std::string_view, unsigned>;

constexpr int kMaxNesting = 16;  // of schemas that refer to others

constexpr auto kTypes = std::to_array<Named>({
    {"string", JsonKinds::kString},
    {"number", JsonKinds::kNumber},
    {"integer", JsonKinds::kInteger},
    {"boolean", JsonKinds::kBoolean},
    {"null", JsonKinds::kNull},
    {"object", JsonKinds::kObject},
    {"array", JsonKinds::kArray},
});
// Keywords of one type.
constexpr auto kKeywords = std::to_array<Named>({
    {"minLength", JsonKinds::kString},
    {"maxLength", JsonKinds::kString},
    {"pattern", JsonKinds::kString},
    {"format", JsonKinds::kString},
    {"minimum", JsonKinds::kNumber},
    {"maximum", JsonKinds::kNumber},
    {"multipleOf", JsonKinds::kNumber},
    {"exclusiveMinimum", JsonKinds::kNumber},
    {"exclusiveMaximum", JsonKinds::kNumber},
    {"properties", JsonKinds::kObject},
    {"required", JsonKinds::kObject},
    {"additionalProperties", JsonKinds::kObject},
    {"minProperties", JsonKinds::kObject},
    {"maxProperties", JsonKinds::kObject},
    {"propertyNames", JsonKinds::kObject},
    {"patternProperties", JsonKinds::kObject},
    {"items", JsonKinds::kArray},
    {"prefixItems", JsonKinds::kArray},
    {"additionalItems", JsonKinds::kArray},
    {"minItems", JsonKinds::kArray},
    {"maxItems", JsonKinds::kArray},
    {"uniqueItems", JsonKinds::kArray},
});

unsigned kind_of(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return JsonKinds::kNull;
    case json::kind::bool_: return value.get_bool() ? JsonKinds::kTrue : JsonKinds::kFalse;
    case json::kind::string: return JsonKinds::kString;
    case json::kind::array: return JsonKinds::kArray;
    case json::kind::object: return JsonKinds::kObject;
    case json::kind::double_: break;
    default: return JsonKinds::kInteger;
  }
  const double number = value.get_double();
  return std::trunc(number) == number ? JsonKinds::kNumber : JsonKinds::kFraction;
}

unsigned kind_named(const json::value& name) {
  if (name.is_string())
    for (const auto& [text, kind] : kTypes)
      if (name.get_string() == text) return kind;
  return JsonKinds::kAny;
}

// The kinds of all items of a list; kAny for what is no list or empty.
template <typename Kind>
unsigned any_of(const json::value& list, const Kind& kind) {
  unsigned kinds = 0;
  if (const json::array* items = list.if_array(); items != nullptr)
    for (const json::value& item : *items)
      if ((kinds |= kind(item)) == JsonKinds::kAny) break;
  return kinds == 0 ? JsonKinds::kAny : kinds;
}

}  // namespace

bool KindReader::may_go(int nesting, std::size_t parts) {
  steps_ += std::min(1 + parts, kMostSteps + 1 - steps_);
  if (nesting < kMaxNesting && steps_ <= kMostSteps) return true;
  outermost_ = -1;
  return false;
}

const json::object* KindReader::target(const json::value& ref) const {
  if (!ref.is_string() || !ref.get_string().starts_with('#')) return nullptr;
  std::string_view pointer(ref.get_string());
  pointer.remove_prefix(1);
  if (pointer.empty()) return &document_;
  if (pointer.front() != '/') return nullptr;
  const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
  const json::value* first = document_.if_contains(pointer.substr(1, end - 1));
  boost::system::error_code error;
  const json::value* found =
      first == nullptr ? nullptr : first->find_pointer(pointer.substr(end), error);
  return found == nullptr ? nullptr : found->if_object();
}

unsigned KindReader::kinds(const json::value& schema, int nesting) {
  const json::object* const fields = schema.if_object();
  return fields == nullptr ? JsonKinds::kAny : kinds(*fields, nesting);
}

unsigned KindReader::kinds(const json::object& fields, int nesting) {
  if (const auto done = known_.find(&fields); done != known_.end()) return done->second;
  if (const auto open = under_way_.find(&fields); open != under_way_.end()) {
    outermost_ = std::min(outermost_, open->second);
    return JsonKinds::kAny;
  }
  if (!may_go(nesting, fields.size())) return JsonKinds::kAny;
  const int met_before = std::exchange(outermost_, kNone);
  under_way_[&fields] = nesting;
  const unsigned out = read(fields, nesting);
  under_way_.erase(&fields);
  if (outermost_ >= nesting) {
    known_[&fields] = out;
    outermost_ = kNone;
  }
  outermost_ = std::min(outermost_, met_before);
  return out;
}

unsigned KindReader::read(const json::object& fields, int nesting) {
  const auto inner = [&](const json::value& item) { return kinds(item, nesting + 1); };
  unsigned out = JsonKinds::kAny, implied = 0;
  bool says = false;
  for (const auto& [key, value] : fields) {
    const std::string_view name(key);
    if (value.is_null() && name != "const") continue;  // as if it were not there
    if (value.is_array() && !may_go(nesting, value.get_array().size())) return JsonKinds::kAny;
    const bool one_of = name == "anyOf" || name == "oneOf";
    says = says || one_of || name == "type" || name == "enum" || name == "const" ||
           name == "allOf" || name == "$ref";
    if (name == "type") out &= value.is_array() ? any_of(value, kind_named) : kind_named(value);
    if (name == "enum") out &= any_of(value, kind_of);
    if (name == "const") out &= kind_of(value);
    if (one_of) out &= any_of(value, inner);
    if (name == "allOf" && value.is_array())
      for (const json::value& part : value.get_array()) out &= inner(part);
    if (const json::object* there = name == "$ref" ? target(value) : nullptr)
      out &= kinds(*there, nesting + 1);
    for (const auto& [keyword, kind] : kKeywords)
      if (keyword == name) implied |= kind;
  }
  if (!says && implied != 0) return implied;
  return out == 0 ? JsonKinds::kAny : out;
}

unsigned KindReader::member(const json::object& fields, std::optional<std::string_view> key,
                            int nesting) {
  if (!may_go(nesting, 0)) return JsonKinds::kAny;
  unsigned out = 0;
  const auto both = [&](unsigned kinds) {
    if (kinds != 0) out = out == 0 ? kinds : out & kinds;
  };
  const auto inner = [&](const json::value& part) {
    const json::object* schema = part.if_object();
    return schema == nullptr ? 0u : member(*schema, key, nesting + 1);
  };
  if (!key) {
    const json::value* additional = fields.if_contains("additionalProperties");
    if (additional != nullptr) both(kinds(*additional, nesting + 1));
  } else if (const json::value* named = fields.if_contains("properties");
             named != nullptr && named->is_object()) {
    const json::value* schema = named->get_object().if_contains(*key);
    if (schema != nullptr) both(kinds(*schema, nesting + 1));
  }
  if (const json::value* ref = fields.if_contains("$ref"); ref != nullptr)
    if (const json::object* there = target(*ref); there != nullptr)
      both(member(*there, key, nesting + 1));
  if (const json::value* all = fields.if_contains("allOf"); all != nullptr && all->is_array())
    for (const json::value& part : all->get_array()) both(inner(part));
  for (const char* name : {"anyOf", "oneOf"}) {
    const json::value* const list = fields.if_contains(name);
    if (list == nullptr || !list->is_array()) continue;
    unsigned any = 0;
    for (const json::value& part : list->get_array()) any |= inner(part);
    both(any);
  }
  return out;
}

unsigned KindReader::kinds(const json::value& schema) { return kinds(schema, 0); }

unsigned KindReader::member_kinds(std::optional<std::string_view> key) {
  unsigned kinds = key ? member(document_, key, 0) : 0;
  if (kinds == 0) kinds = member(document_, std::nullopt, 0);
  return kinds == 0 ? JsonKinds::kAny : kinds;
}

unsigned json_kind_of(std::string_view json) {
  switch (json.front()) {
    case '"': return JsonKinds::kString;
    case '{': return JsonKinds::kObject;
    case '[': return JsonKinds::kArray;
    case 't': return JsonKinds::kTrue;
    case 'f': return JsonKinds::kFalse;
    case 'n': return JsonKinds::kNull;
    default: break;
  }
  return json.find_first_of(".eE") == json.npos ? JsonKinds::kInteger : JsonKinds::kFraction;
}

}  // namespace strata
