// The document around the parts: references, merged schemas, alternatives.
#include "grammar/schema_document.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/printable.h"

namespace strata {
namespace {

using boost::json::object;
using boost::json::value;

std::size_t types_in(const object& schema) {
  const value* const type = find_key(schema, "type");
  return type != nullptr && type->is_array() ? type->get_array().size() : 1;
}

// Steps to put `b` into `a`. Whatever of `a` has a part in `b` too is copied, at worst all of it,
// and may nest one deeper for it.
std::size_t join_steps(const object& a, const object& b) {
  return copy_steps(a) + copy_steps(b) + types_in(a) * types_in(b);
}

std::string unescaped_step(std::string_view step) {
  std::string out;
  for (std::size_t i = 0; i < step.size(); ++i) {
    const std::string_view rest = step.substr(i);
    if (rest.starts_with("~0") || rest.starts_with("~1")) {
      out += rest[1] == '0' ? '~' : '/';
      ++i;
    } else if (unsigned byte = 0;
               rest[0] == '%' && rest.size() > 2 &&
               std::from_chars(rest.data() + 1, rest.data() + 3, byte, 16).ptr == rest.data() + 3) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += rest[0];
    }
  }
  return out;
}

// Whether no object fits, or no value at all.
bool is_void(const object& schema, bool of_objects) {
  const value* const type = find_key(schema, "type");
  if (type != nullptr && type->is_array() && type->get_array().empty()) return true;
  const value* const constant = find_key(schema, "const");
  if (constant != nullptr) return of_objects && !constant->is_object();
  const value* const listed = find_key(schema, "enum");
  if (listed == nullptr || !listed->is_array()) return false;
  return std::ranges::none_of(listed->get_array(),
                              [&](const value& each) { return !of_objects || each.is_object(); });
}

}  // namespace

Status SchemaDocument::wrong(const std::string& path, std::string_view what) const {
  return invalid_argument("{}, {}: {}", where_, path, what);
}

Status SchemaDocument::no_support(const std::string& path, std::string_view what) const {
  return unsupported("{}, {}: {} is not supported", where_, path, what);
}

Status SchemaDocument::spend(std::size_t steps, const std::string& path) const {
  const Status status = work_.spend(steps);
  return status.ok() ? status : status.with_context(fmt::format("{}, {}", where_, path));
}

Status SchemaDocument::leave_out(const std::string& path, std::string_view keyword,
                                 std::string_view why) const {
  const std::string place = fmt::format("{}, {}/{}", where_, path, keyword);
  if (notes_ == nullptr || notes_->strict()) return unsupported("{}: {}", place, why);
  notes_->add(fmt::format("{}: answers are not held to this, as {}", place, why));
  return {};
}

Result<const value*> SchemaDocument::resolve(std::string_view pointer,
                                             const std::string& path) const {
  const value* at = &root_;
  if (!pointer.starts_with('#')) return no_support(path, "a $ref to another document");
  pointer.remove_prefix(1);
  if (!pointer.empty() && pointer[0] != '/') return no_support(path, "a $ref to an anchor");
  while (!pointer.empty()) {
    const std::size_t end = std::min(pointer.find('/', 1), pointer.size());
    const std::string step = unescaped_step(pointer.substr(1, end - 1));
    pointer.remove_prefix(end);
    const value* next = nullptr;
    if (const auto* members = at->if_object()) {
      next = find_key(*members, step);
    } else if (const auto* list = at->if_array();
               list != nullptr && !step.empty() && step.size() < 7 &&
               std::ranges::all_of(step, [](char c) { return '0' <= c && c <= '9'; })) {
      const std::size_t index = std::stoul(step);
      if (index < list->size()) next = &(*list)[index];
    }
    if (next == nullptr) return wrong(path, "$ref leads to nothing");
    at = next;
  }
  return at;
}

Result<object> SchemaDocument::without(const object& schema, std::string_view key,
                                       const std::string& path) const {
  object rest;
  for (const auto& [name, each] : schema) {
    if (view(name) == key) continue;
    STRATA_TRY(spend(copy_steps(each), path));
    rest[name] = each;
  }
  return rest;
}

Result<object> SchemaDocument::merged(object base, const value& part, const std::string& path) {
  if (part.is_bool()) {
    return part.get_bool() ? std::move(base) : object{{"enum", boost::json::array()}};
  }
  if (!part.is_object()) return wrong(path, "a schema must be an object, true or false");
  const object* second = &part.get_object();
  object dissolved;
  for (std::size_t i = 0; find_key(*second, "$ref") != nullptr; ++i) {
    const value& ref = *find_key(*second, "$ref");
    if (i > kMostNesting) return wrong(path, "$ref leads in a circle");
    if (!ref.is_string()) return wrong(path + "/$ref", "expected a string");
    STRATA_ASSIGN(const value* const target, resolve(view(ref.get_string()), path + "/$ref"));
    STRATA_ASSIGN(const object rest, without(*second, "$ref", path));
    if (!target->is_object()) return wrong(path + "/$ref", "expected an object behind it");
    STRATA_TRY(spend(copy_steps(target->get_object()), path));
    STRATA_ASSIGN(dissolved, joined(target->get_object(), rest, path));
    second = &dissolved;
  }
  return joined(std::move(base), *second, path);
}

Result<object> SchemaDocument::joined(object a, const object& b, const std::string& path) {
  STRATA_TRY(spend(join_steps(a, b), path));
  Result<object> out = merged_schema(std::move(a), b);
  if (!out.ok()) return out.status().with_context(fmt::format("{}, {}", where_, path));
  return out;
}

Result<std::vector<std::string>> SchemaDocument::required_names(const object& schema,
                                                                const Path& path) const {
  std::vector<std::string> names;
  const value* const required = find_key(schema, "required");
  if (required == nullptr) return names;
  if (required->is_bool()) return names;  // draft 3, of the member itself
  if (!required->is_array()) return wrong(path + "/required", "expected a list of names");
  STRATA_TRY(spend(required->get_array().size(), path));
  for (const value& name : required->get_array()) {
    if (!name.is_string()) return wrong(path + "/required", "expected a list of names");
    names.emplace_back(view(name.get_string()));
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Result<std::vector<std::string>> SchemaDocument::types_of(const object& schema,
                                                          const std::string& path) const {
  std::vector<std::string> types;
  if (const value* const type = find_key(schema, "type")) {
    const boost::json::array list =
        type->is_array() ? type->get_array() : boost::json::array{*type};
    for (const value& name : list) {
      const bool known =
          name.is_string() &&
          (is_of_type(0, view(name.get_string())) || is_of_type("", view(name.get_string())) ||
           is_of_type(true, view(name.get_string())) ||
           is_of_type(nullptr, view(name.get_string())) ||
           is_of_type(object(), view(name.get_string())) || name == value("array"));
      if (!known)
        return wrong(path + "/type",
                     "expected object, array, string, number, integer, boolean or null");
      types.emplace_back(view(name.get_string()));
    }
    if (types.empty()) return wrong(path + "/type", "no type is left");
    return types;
  }
  constexpr std::pair<KeywordUse, std::string_view> kTypes[] = {{KeywordUse::kObject, "object"},
                                                                {KeywordUse::kArray, "array"},
                                                                {KeywordUse::kString, "string"},
                                                                {KeywordUse::kNumber, "number"}};
  unsigned used = 0;
  for (const auto& [key, each] : schema)
    if (!is_absent(view(key), each)) used |= 1u << static_cast<unsigned>(use_of_keyword(view(key)));
  for (const auto& [use, type] : kTypes)
    if ((used & 1u << static_cast<unsigned>(use)) != 0) types.emplace_back(type);
  return types;
}

Status SchemaDocument::check_keywords(const object& schema, const std::string& path) const {
  for (const auto& [key, keyword_value] : schema) {
    if (is_absent(view(key), keyword_value)) continue;
    const bool off = keyword_value.is_bool() && !keyword_value.get_bool();
    const bool harmless = view(key) == "unevaluatedProperties" && off &&
                          find_key(schema, "additionalProperties") == nullptr;
    if (use_of_keyword(view(key)) == KeywordUse::kUnsupported && !harmless)
      return no_support(path + "/" + escaped_step(view(key)), "this keyword");
  }
  return {};
}

Status SchemaDocument::collect(const object& schema, const std::string& path, std::size_t nesting,
                               std::vector<object>& out) {
  if (nesting > kMostNesting)
    return resource_exhausted("{}, {}: schemas nest deeper than {}", where_, path, kMostNesting);
  STRATA_TRY(spend(schema.size(), path));
  if (find_key(schema, "$ref") != nullptr) {
    STRATA_ASSIGN(const object plain, merged({}, schema, path));
    return collect(plain, path, nesting + 1, out);
  }
  if (const value* const all = find_key(schema, "allOf"); all != nullptr) {
    if (!all->is_array()) return wrong(path + "/allOf", "expected a list of schemas");
    STRATA_ASSIGN(object one, without(schema, "allOf", path));
    for (const value& part : all->get_array()) {
      STRATA_ASSIGN(one, merged(std::move(one), part, path + "/allOf"));
    }
    return collect(one, path, nesting + 1, out);
  }
  for (const char* key : {"anyOf", "oneOf"})
    if (find_key(schema, key) != nullptr) return collect_any(schema, key, path, nesting, out);
  if (is_void(schema, false)) return {};
  if (out.size() == kMostAlternatives)
    return resource_exhausted("{}, {}: more than {} alternatives", where_, path, kMostAlternatives);
  STRATA_TRY(spend(copy_steps(schema), path));
  out.push_back(schema);
  return {};
}

Status SchemaDocument::collect_any(const object& schema, std::string_view key,
                                   const std::string& path, std::size_t nesting,
                                   std::vector<object>& out) {
  const value& list = *find_key(schema, key);
  if (!list.is_array()) return wrong(fmt::format("{}/{}", path, key), "expected a list of schemas");
  STRATA_ASSIGN(const object rest, without(schema, key, path));
  for (const value& part : list.get_array()) {
    STRATA_TRY(spend(copy_steps(rest), path));
    STRATA_ASSIGN(const object one, merged(rest, part, fmt::format("{}/{}", path, key)));
    STRATA_TRY(collect(one, path, nesting + 1, out));
  }
  return {};
}

Result<std::vector<object>> SchemaDocument::alternatives(const value& schema,
                                                         const std::string& path) {
  std::vector<object> out;
  if (schema.is_bool() && !schema.get_bool()) return out;
  if (!schema.is_object() && !schema.is_bool())
    return wrong(path, "a schema must be an object, true or false");
  STRATA_TRY(collect(schema.is_object() ? schema.get_object() : object(), path, 0, out));
  return out;
}

Result<std::vector<object>> SchemaDocument::objects() {
  if (!root_.is_object()) return wrong("#", "a schema must be an object");
  STRATA_TRY(spend(copy_steps(root_), "#"));
  object top;
  // References find them in the document.
  for (const auto& [key, each] : root_.get_object())
    if (key != "$defs" && key != "definitions") top[key] = each;
  const value* const type = find_key(top, "type");
  if (type == nullptr || *type != value("object")) {
    STRATA_ASSIGN(top, joined(object{{"type", "object"}}, top, "#"));
  }
  std::vector<object> out;
  STRATA_TRY(collect(top, "#", 0, out));
  std::erase_if(out, [](const object& each) { return is_void(each, true); });
  if (out.empty()) return wrong("#", "no object fits, and arguments are one");
  return out;
}

}  // namespace strata
