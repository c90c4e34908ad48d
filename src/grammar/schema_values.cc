// Values of one type.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/printable.h"
#include "grammar/json_pattern.h"
#include "grammar/schema_reader.h"

namespace strata {
namespace {

using boost::json::object;
using boost::json::value;
using Id = GrammarBuilder::Id;

constexpr std::size_t kPatternBytes = 64;  // that are looked up in one step
constexpr double kPast64Bits = 0x1p63;

// Formats of integers, as OpenAPI and others have them.
struct Size {
  std::string_view name;
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};
constexpr Size kSizes[] = {
    {"int8", -0x80, 0x7f},
    {"int16", -0x8000, 0x7fff},
    {"int32", -0x8000'0000LL, 0x7fff'ffff},
    {"int64", std::numeric_limits<std::int64_t>::min()},
    {"uint8", 0, 0xff},
    {"uint16", 0, 0xffff},
    {"uint32", 0, 0xffff'ffff},
    {"uint64"},
};

const Size* size_named(const value& name) {
  const auto* const found = std::ranges::find_if(kSizes, [&](const Size& size) {
    return name.is_string() && view(name.get_string()) == size.name;
  });
  return found == std::end(kSizes) ? nullptr : found;
}

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

std::vector<std::pair<std::int64_t, std::int64_t>> SchemaReader::sizes_of(const object& schema) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const value& name : values_of(schema, "format"))
    if (const Size* const size = size_named(name)) out.emplace_back(size->least, size->most);
  return out;
}

// A format of texts says nothing of numbers.
Status SchemaReader::check_number_format(const object& schema, const std::string& path) const {
  for (const value& name : values_of(schema, "format")) {
    if (!name.is_string()) return wrong(path + "/format", "expected a string");
    const std::string_view text = view(name.get_string());
    if (size_named(name) == nullptr && text != "float" && text != "double" && !text.empty() &&
        pattern_of_format(text).empty())
      STRATA_TRY(leave_out(path, "format",
                           fmt::format("the format {} is not supported", printable(text, 100))));
  }
  return {};
}

// What whole numbers cannot be held to, or others.
Status SchemaReader::check_multiples(const object& schema, bool whole,
                                     const std::string& path) const {
  for (const value& unit : values_of(schema, "multipleOf")) {
    if (!unit.is_number() || !is_finite(unit) || unit.to_number<double>() <= 0)
      return wrong(path + "/multipleOf", "expected a number above 0");
    const double inverse = 1 / unit.to_number<double>();
    if (whole && std::trunc(inverse) == inverse) continue;
    STRATA_TRY(
        leave_out(path, "multipleOf", "multiples of other numbers than 1 are not supported"));
  }
  return {};
}

Result<Id> SchemaReader::read_number(const object& schema, const std::string& path) {
  const boost::json::array units = values_of(schema, "multipleOf");
  const bool whole = std::ranges::any_of(units, [](const value& unit) {
    return unit.is_number() && unit.to_number<double>() >= 1 && is_of_type(unit, "integer");
  });
  if (whole) return read_integer(schema, path);
  STRATA_TRY(check_multiples(schema, false, path));
  STRATA_TRY(check_number_format(schema, path));
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
  STRATA_TRY(check_multiples(schema, true, path));
  STRATA_ASSIGN(auto min, integer_bound(schema, 1, path));
  STRATA_ASSIGN(auto max, integer_bound(schema, -1, path));
  STRATA_TRY(check_number_format(schema, path));
  for (const auto& [least, most] : sizes_of(schema)) {
    min = std::max(min.value_or(least), least);
    max = std::min(max.value_or(most), most);
  }
  if (!min && !max) return json_.integer();
  if (min && max && *min > *max) return wrong(path, "no integer lies between the bounds");
  return json_.integer_between(min, max);
}

// Beyond 64 bits, where a bound leaves a side open, that is closed by what fits.
Result<std::optional<std::int64_t>> SchemaReader::integer_bound(const object& schema, int side,
                                                                const std::string& path) const {
  using Limits = std::numeric_limits<std::int64_t>;
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
    const double number = given->to_number<double>();
    const double rounded = side > 0 ? std::ceil(number) : std::floor(number);
    std::int64_t whole = side > 0 ? Limits::min() : Limits::max();
    bool exact = false;
    if (given->is_int64()) {
      whole = given->get_int64();
      exact = true;
    } else if (std::fabs(rounded) < kPast64Bits) {
      whole = static_cast<std::int64_t>(rounded);
      exact = rounded == number;
    } else if (side * number > 0) {
      return no_support(key_path, "a bound this large");
    }
    if (exclusive && exact) {
      if (whole == (side > 0 ? Limits::max() : Limits::min()))
        return no_support(key_path, "a bound this large");
      whole += side;
    }
    if (!out || (side > 0 ? whole > *out : whole < *out)) out = whole;
  }
  return out;
}

Result<Id> SchemaReader::read_string(const object& schema, const std::string& path) {
  LengthLimits limits;
  STRATA_ASSIGN(limits.min, count(schema, "minLength", 0, path));
  STRATA_ASSIGN(limits.max, count(schema, "maxLength", kUnbounded, path));
  if (limits.min > limits.max) return wrong(path, "minLength is above maxLength");
  std::vector<std::pair<std::string, std::string_view>> regexes;
  for (const char* const key : {"pattern", "format"}) {
    for (const value& given : values_of(schema, key)) {
      if (!given.is_string()) return wrong(fmt::format("{}/{}", path, key), "expected a string");
      std::string regex(view(given.get_string()));
      if (key == std::string_view("format")) {
        const std::string name = std::exchange(regex, pattern_of_format(regex));
        if (regex.empty() && !name.empty())
          STRATA_TRY(leave_out(
              path, key, fmt::format("the format {} is not supported", printable(name, 100))));
        if (regex.empty()) continue;
      }
      regexes.emplace_back(std::move(regex), key);
    }
  }
  std::optional<Id> held;
  for (const auto& [regex, key] : regexes) {
    if (held) {
      STRATA_TRY(leave_out(path, key,
                           fmt::format("{} together with another pattern or format is "
                                       "not supported",
                                       key)));
      continue;
    }
    STRATA_ASSIGN(held, read_pattern(regex, limits, key, path));
  }
  if (held) return *held;
  if (limits.min == 0 && limits.max == kUnbounded) return json_.string();
  return json_.quoted(builder_.repeat(json_.character(), limits.min, limits.max));
}

Result<std::optional<Id>> SchemaReader::read_pattern(std::string_view regex, LengthLimits limits,
                                                     std::string_view key, const Path& path) {
  const Path key_path = fmt::format("{}/{}", path, key);
  auto& known = json_.known_patterns();
  const LengthLimits tries[] = {limits, {limits.min, kUnbounded}, {0, limits.max}, {0, kUnbounded}};
  Status first;
  for (const LengthLimits& each : tries) {
    const std::string name = fmt::format("{}-{} {}", each.min, each.max, regex);
    STRATA_TRY(spend(1 + regex.size() / kPatternBytes, path));
    if (!known.contains(name)) {
      STRATA_TRY(spend(regex.size(), path));
      const Result<Id> made = add_json_pattern(json_, regex, each);
      STRATA_TRY(check_room(path));
      if (first.ok()) first = made.status();
      if (made.status().code() == StatusCode::kUnsupported) continue;
      if (!made.ok()) return made.status().with_context(fmt::format("{}, {}", where_, key_path));
      const RuleId rule = builder_.add_rule(fmt::format("{}, {}", where_, key_path));
      builder_.define(rule, *made);
      known[name] = builder_.rule(rule);
    }
    if (each.min != limits.min) STRATA_TRY(leave_out(path, "minLength", first.message()));
    if (each.max != limits.max) STRATA_TRY(leave_out(path, "maxLength", first.message()));
    return std::optional(known[name]);
  }
  STRATA_TRY(leave_out(path, key, first.message()));
  return std::optional<Id>();
}

Result<Id> SchemaReader::read_array(const object& schema, const Path& path, std::size_t nesting) {
  STRATA_ASSIGN(const std::uint32_t min, count(schema, "minItems", 0, path));
  STRATA_ASSIGN(const std::uint32_t max, count(schema, "maxItems", kUnbounded, path));
  if (min > max) return wrong(path, "minItems is above maxItems");
  if (const value* const unique = find_key(schema, "uniqueItems");
      unique != nullptr && *unique != value(false) && max > 1)
    STRATA_TRY(leave_out(path, "uniqueItems", "this keyword is not supported"));
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
