// Values that `enum` or `const` list, as far as the other keywords allow them.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "grammar/matcher.h"
#include "grammar/schema_reader.h"

namespace strata {
namespace {

using boost::json::object;
using boost::json::value;
using Id = GrammarBuilder::Id;

KeywordUse use_for(const value& v) {
  if (v.is_string()) return KeywordUse::kString;
  if (v.is_number()) return KeywordUse::kNumber;
  if (v.is_array()) return KeywordUse::kArray;
  return v.is_object() ? KeywordUse::kObject : KeywordUse::kAny;
}

}  // namespace

Result<Id> SchemaReader::read_constants(const object& schema, const std::string& path) {
  std::vector<std::string> types;
  if (find_key(schema, "type") != nullptr) {
    STRATA_ASSIGN(types, types_of(schema, path));
  }
  const value* const listed = find_key(schema, "enum");
  const value* const constant = find_key(schema, "const");
  if (listed != nullptr && !listed->is_array()) return wrong(path + "/enum", "expected a list");
  const std::span<const value> values =
      constant != nullptr ? std::span(constant, 1) : std::span(listed->get_array());
  const std::size_t looked_at = 1 + types.size() + schema.size() +
                                values_of(schema, "multipleOf").size() +
                                values_of(schema, "format").size();
  STRATA_TRY(spend(values.size() * looked_at, path));
  std::vector<Id> ways;
  std::optional<Grammar> texts;
  for (const value& v : values) {
    STRATA_TRY(check_room(path));
    if (!is_finite(v)) return wrong(path, "a number is too large");
    const bool typed = types.empty() || std::ranges::any_of(types, [&](const std::string& type) {
                         return is_of_type(v, type);
                       });
    const bool in_list = constant == nullptr || listed == nullptr ||
                         std::ranges::find(listed->get_array(), v) != listed->get_array().end();
    if (!typed || !in_list) continue;
    if (v.is_string() && !texts) {
      STRATA_ASSIGN(texts, listed_texts(schema, path));
    }
    STRATA_ASSIGN(const bool allowed,
                  v.is_string() ? text_fits(v, *texts, path) : fits(v, schema, path));
    if (allowed) ways.push_back(json_.constant(v));
  }
  if (ways.empty() && constant == nullptr)
    return wrong(path + "/enum", values.empty() ? "the list is empty, so that no value fits"
                                                : "no value of the list is of the type, or fits");
  if (ways.empty()) return wrong(path + "/const", "the value is not what the schema allows");
  return builder_.choice(std::move(ways));
}

Result<bool> SchemaReader::fits(const value& v, const object& schema,
                                const std::string& path) const {
  const KeywordUse use = use_for(v);
  if (use == KeywordUse::kAny) return true;
  if (use == KeywordUse::kNumber) return number_fits(v, schema, path);
  for (const auto& [key, each] : schema)
    if (use_of_keyword(view(key)) == use && !is_absent(view(key), each))
      STRATA_TRY(
          leave_out(path, escaped_step(view(key)), "the values of the list are not checked"));
  return true;
}

// Of the strings that the other keywords allow; null for all.
Result<Grammar> SchemaReader::listed_texts(const object& schema, const std::string& path) {
  object keywords;
  for (const char* key : {"minLength", "maxLength", "pattern", "format"})
    if (const value* const given = find_key(schema, key)) keywords[key] = *given;
  STRATA_TRY(spend(copy_steps(keywords), path));
  if (keywords.empty()) return Grammar();
  GrammarBuilder builder;
  JsonText json(builder);
  SchemaReader reader(json, root_, where_, work_, notes_);
  STRATA_ASSIGN(const Id string, reader.read_string(keywords, path));
  const RuleId root = builder.add_rule(fmt::format("{}, {}", where_, path));
  builder.define(root, string);
  STRATA_TRY(spend(builder.size(), path));
  return builder.compile(root);
}

Result<bool> SchemaReader::text_fits(const value& text, const Grammar& texts,
                                     const std::string& path) const {
  if (texts == nullptr) return true;
  STRATA_TRY(spend(1 + text.get_string().size(), path));
  GrammarMatcher matcher(texts);
  return matcher.read(boost::json::serialize(text)) && matcher.done();
}

Result<bool> SchemaReader::number_fits(const value& number, const object& schema,
                                       const std::string& path) const {
  STRATA_ASSIGN(const auto min, bound(schema, "minimum", "exclusiveMinimum", 1, path));
  STRATA_ASSIGN(const auto max, bound(schema, "maximum", "exclusiveMaximum", -1, path));
  const auto given = number.to_number<double>();
  if (min && (min->exclusive ? given <= min->value : given < min->value)) return false;
  if (max && (max->exclusive ? given >= max->value : given > max->value)) return false;
  for (const auto& [least, most] : sizes_of(schema)) {
    const bool whole = number.is_int64();
    if (!whole || number.get_int64() < least || number.get_int64() > most) return false;
  }
  for (const value& unit : values_of(schema, "multipleOf")) {
    if (!unit.is_number() || unit.to_number<double>() <= 0)
      return wrong(path + "/multipleOf", "expected a number above 0");
    if (std::fmod(given, unit.to_number<double>()) != 0) return false;
  }
  return true;
}

}  // namespace strata
