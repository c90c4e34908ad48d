// Values of one type.
#include <algorithm>
#include <cmath>

#include "grammar/json_pattern.h"
#include "grammar/schema_reader.h"

namespace strata {
namespace {

using boost::json::object;
using boost::json::value;
using Id = GrammarBuilder::Id;

constexpr std::size_t kPatternBytes = 64;  // that are looked up in one step

}  // namespace

Result<std::uint32_t> SchemaReader::count(const object& schema, std::string_view key,
                                          std::uint32_t otherwise, const std::string& path) const {
  const value* const given = find_key(schema, key);
  if (given == nullptr) return otherwise;
  const bool whole = is_of_type(*given, "integer");
  const double number = whole ? given->to_number<double>() : -1;
  if (number < 0)
    return wrong(fmt::format("{}/{}", path, key), "expected a whole number, not negative");
  return static_cast<std::uint32_t>(std::min<double>(number, GrammarLimits::kRepetitions));
}

Result<std::optional<JsonBound>> SchemaReader::bound(const object& schema, std::string_view key,
                                                     std::string_view exclusive_key, int side,
                                                     const std::string& path) const {
  std::optional<JsonBound> out;
  bool exclusive = false;
  for (const std::string_view name : {key, exclusive_key}) {
    const value* const given = find_key(schema, name);
    if (given == nullptr) continue;
    if (name == exclusive_key && given->is_bool()) {  // as in draft 4
      exclusive = given->get_bool();
      continue;
    }
    if (!given->is_number() || !is_finite(*given))
      return wrong(fmt::format("{}/{}", path, name), "expected a number");
    const JsonBound next{given->to_number<double>(), name == exclusive_key};
    if (!out || side * next.value >= side * out->value) out = next;
  }
  if (out && exclusive) out->exclusive = true;
  return out;
}

Result<Id> SchemaReader::read_number(const object& schema, const std::string& path) {
  STRATA_ASSIGN(const auto min, bound(schema, "minimum", "exclusiveMinimum", 1, path));
  STRATA_ASSIGN(const auto max, bound(schema, "maximum", "exclusiveMaximum", -1, path));
  if (!min && !max) return json_.number();
  const bool apart = min && max && min->value == max->value && (min->exclusive || max->exclusive);
  if (min && max && (min->value > max->value || apart))
    return wrong(path, "no number lies between the bounds");
  Result<Id> out = json_.number_between(min, max);
  if (!out.ok()) return out.status().with_context(fmt::format("{}, {}", where_, path));
  return out;
}

Result<Id> SchemaReader::read_integer(const object& schema, const std::string& path) {
  STRATA_ASSIGN(const auto min, integer_bound(schema, 1, path));
  STRATA_ASSIGN(const auto max, integer_bound(schema, -1, path));
  if (!min && !max) return json_.integer();
  if (min && max && *min > *max) return wrong(path, "no integer lies between the bounds");
  return json_.integer_between(min, max);
}

Result<std::optional<std::int64_t>> SchemaReader::integer_bound(const object& schema, int side,
                                                                const std::string& path) const {
  constexpr double kMost = 9e18;
  std::optional<std::int64_t> out;
  const std::string_view keys[] = {side > 0 ? "minimum" : "maximum",
                                   side > 0 ? "exclusiveMinimum" : "exclusiveMaximum"};
  const value* const flag = find_key(schema, keys[1]);
  for (const std::string_view key : keys) {
    const value* const given = find_key(schema, key);
    if (given == nullptr || given->is_bool()) continue;
    const std::string key_path = fmt::format("{}/{}", path, key);
    if (!given->is_number() || !is_finite(*given)) return wrong(key_path, "expected a number");
    const bool exclusive =
        key == keys[1] || (flag != nullptr && flag->is_bool() && flag->get_bool());
    std::int64_t whole = 0;
    bool exact = true;
    if (given->is_int64()) {
      whole = given->get_int64();
    } else {
      const double number = given->to_number<double>();
      if (side * number < -kMost) continue;
      const double rounded = side > 0 ? std::ceil(number) : std::floor(number);
      if (std::fabs(rounded) > kMost) return no_support(key_path, "a bound this large");
      whole = static_cast<std::int64_t>(rounded);
      exact = rounded == number;
    }
    if (std::fabs(static_cast<double>(whole)) > kMost)
      return no_support(key_path, "a bound this large");
    if (exclusive && exact) whole += side;
    if (!out || side * whole > side * *out) out = whole;
  }
  return out;
}

Result<Id> SchemaReader::read_string(const object& schema, const std::string& path) {
  LengthLimits limits;
  STRATA_ASSIGN(limits.min, count(schema, "minLength", 0, path));
  STRATA_ASSIGN(limits.max, count(schema, "maxLength", kUnbounded, path));
  if (limits.min > limits.max) return wrong(path, "minLength is above maxLength");
  const value* const pattern = find_key(schema, "pattern");
  const value* const format = find_key(schema, "format");
  if (pattern != nullptr && format != nullptr)
    return no_support(path + "/pattern", "pattern together with format");
  if (pattern == nullptr && format == nullptr) {
    if (limits.min == 0 && limits.max == kUnbounded) return json_.string();
    return json_.quoted(builder_.repeat(json_.character(), limits.min, limits.max));
  }
  const std::string key_path = path + (pattern != nullptr ? "/pattern" : "/format");
  const value& given = pattern != nullptr ? *pattern : *format;
  if (!given.is_string()) return wrong(key_path, "expected a string");
  std::string regex(view(given.get_string()));
  if (format != nullptr) {
    regex = pattern_of_format(regex);
    if (regex.empty())
      return no_support(key_path, fmt::format("the format {}", given.get_string()));
  }
  STRATA_TRY(spend(regex.size() / kPatternBytes, path));
  const std::string name = fmt::format("{}-{} {}", limits.min, limits.max, regex);
  auto& patterns = json_.known_patterns();
  if (const auto known = patterns.find(name); known != patterns.end()) return known->second;
  STRATA_TRY(spend(regex.size(), path));
  Result<Id> out = add_json_pattern(json_, regex, limits);
  if (!out.ok()) return out.status().with_context(fmt::format("{}, {}", where_, key_path));
  const RuleId rule = builder_.add_rule(fmt::format("{}, {}", where_, key_path));
  builder_.define(rule, *out);
  return patterns[name] = builder_.rule(rule);
}

Result<Id> SchemaReader::read_array(const object& schema, const Path& path, std::size_t nesting) {
  if (const value* const unique = find_key(schema, "uniqueItems");
      unique && *unique != value(false))
    return no_support(path + "/uniqueItems", "this keyword");
  STRATA_ASSIGN(const std::uint32_t min, count(schema, "minItems", 0, path));
  STRATA_ASSIGN(const std::uint32_t max, count(schema, "maxItems", kUnbounded, path));
  if (min > max) return wrong(path, "minItems is above maxItems");
  const value* first_items = find_key(schema, "prefixItems");
  const value* items = find_key(schema, "items");
  std::string_view first_key = "prefixItems", key = "items";
  if (items != nullptr && items->is_array()) {  // as in draft 7
    first_items = items;
    items = find_key(schema, "additionalItems");
    first_key = "items", key = "additionalItems";
  }
  std::vector<Id> first;
  if (first_items != nullptr && !first_items->is_array())
    return wrong(path + "/prefixItems", "expected a list of schemas");
  const std::size_t given = first_items == nullptr ? 0 : first_items->get_array().size();
  for (std::size_t i = 0; i < std::min<std::size_t>(given, max); ++i) {
    STRATA_ASSIGN(const Id item,
                  read_schema(first_items->get_array()[i],
                              fmt::format("{}/{}/{}", path, first_key, i), nesting + 1));
    first.push_back(item);
  }
  STRATA_ASSIGN(const Id item,
                items == nullptr
                    ? Result<Id>(json_.value())
                    : read_schema(*items, fmt::format("{}/{}", path, key), nesting + 1));
  // From the last to the first: what may follow, each with its comma.
  const auto known = static_cast<std::uint32_t>(first.size());
  const std::uint32_t least = min - std::min(min, std::max(known, 1u));
  const std::uint32_t most = max == kUnbounded ? max : max - std::min(max, std::max(known, 1u));
  Id rest = builder_.repeat(builder_.sequence({json_.comma(), item}), least, most);
  if (known == 0) first.push_back(item);
  for (std::size_t i = first.size(); i-- > 0;) {
    rest = builder_.sequence({i == 0 ? builder_.empty() : json_.comma(), first[i], rest});
    if (i > 0 && i >= min) rest = builder_.optional(rest);
  }
  const Id close = builder_.literal("]");
  std::vector<Id> ways;
  if (max > 0) ways.push_back(builder_.sequence({rest, json_.space(), close}));
  if (min == 0) ways.push_back(close);
  return builder_.sequence(
      {builder_.literal("["), json_.space(), builder_.choice(std::move(ways))});
}

}  // namespace strata
