#include "serve/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"

namespace strata::serve {
namespace {

namespace json = boost::json;

constexpr std::size_t kMostWarnings = 16;

bool asks_for_nothing(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null: return true;
    case json::kind::bool_: return !value.get_bool();
    case json::kind::int64: return value.get_int64() == 0;
    case json::kind::uint64: return value.get_uint64() == 0;
    case json::kind::double_: return value.get_double() == 0;
    case json::kind::string: return value.get_string().empty();
    case json::kind::array: return value.get_array().empty();
    case json::kind::object: return value.get_object().empty();
  }
  return false;
}

}  // namespace

std::string text_of(const json::string& text) { return {text.data(), text.size()}; }

Refusal Fields::wrong(std::string_view name, std::string_view what) const {
  return wrong_field(path_ + std::string(name), what);
}

Refusal Fields::wrong(std::string_view name, const Status& status) const {
  return wrong_field(path_ + std::string(name), status);
}

const json::value* Fields::value(std::string_view name) {
  known_.emplace(name);
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Answer<std::optional<std::string>> Fields::text(std::string_view name) {
  const json::value* found = value(name);
  if (found == nullptr) return std::optional<std::string>();
  const json::string* text = found->if_string();
  if (text == nullptr) return wrong(name, "must be a string");
  return std::optional(text_of(*text));
}

Answer<std::optional<bool>> Fields::boolean(std::string_view name) {
  const json::value* found = value(name);
  if (found == nullptr) return std::optional<bool>();
  const bool* boolean = found->if_bool();
  if (boolean == nullptr) return wrong(name, "must be true or false");
  return std::optional(*boolean);
}

Answer<std::optional<double>> Fields::number(std::string_view name, double low, double high) {
  const json::value* found = value(name);
  if (found == nullptr) return std::optional<double>();
  if (!found->is_number()) return wrong(name, "must be a number");
  const auto number = found->to_number<double>();
  if (!std::isfinite(number) || number < low || number > high)
    return wrong(name, fmt::format("must lie between {:g} and {:g}", low, high));
  return std::optional(number);
}

Answer<std::optional<std::int64_t>> Fields::integer(std::string_view name, std::int64_t low,
                                                    std::int64_t high) {
  const json::value* found = value(name);
  if (found == nullptr) return std::optional<std::int64_t>();
  boost::system::error_code error;
  const auto integer = found->is_number() ? found->to_number<std::int64_t>(error) : 0;
  const double* const real = found->if_double();
  const bool far = real != nullptr ? std::isfinite(*real) && std::abs(*real) >= 0x1p63
                                   : found->is_uint64() && found->get_uint64() >> 63 != 0;
  if (!found->is_number() || (error == json::error::not_exact && !far))
    return wrong(name, "must be a whole number");
  if (error || integer < low || integer > high)
    return wrong(name, fmt::format("must lie between {} and {}", low, high));
  return std::optional(integer);
}

Answer<const json::object*> Fields::object(std::string_view name) {
  const json::value* found = value(name);
  if (found != nullptr && !found->is_object()) return wrong(name, "must be an object");
  return found == nullptr ? nullptr : found->if_object();
}

Answer<const json::array*> Fields::array(std::string_view name) {
  const json::value* found = value(name);
  if (found != nullptr && !found->is_array()) return wrong(name, "must be a list");
  return found == nullptr ? nullptr : found->if_array();
}

Answer<std::optional<std::string>> Fields::word(std::string_view name,
                                                std::initializer_list<std::string_view> words) {
  STRATA_ASSIGN(auto found, text(name));
  if (!found || std::ranges::find(words, *found) != words.end()) return found;
  return wrong(name, fmt::format("must be one of {}", fmt::join(words, ", ")));
}

Answer<std::vector<std::string>> Fields::texts(std::string_view name, std::size_t most) {
  const json::value* found = value(name);
  std::vector<std::string> out;
  if (found == nullptr) return out;
  if (const json::string* text = found->if_string()) return std::vector{text_of(*text)};
  const json::array* list = found->if_array();
  if (list == nullptr) return wrong(name, "must be a string or a list of strings");
  if (list->size() > most) return wrong(name, fmt::format("may hold {} strings at most", most));
  for (const json::value& each : *list) {
    if (!each.is_string()) return wrong(name, "must be a string or a list of strings");
    out.push_back(text_of(each.get_string()));
  }
  return out;
}

void Fields::accept(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) known_.emplace(name);
}

std::optional<Refusal> Fields::refuse(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const json::value* found = value(name);
    if (found != nullptr && !asks_for_nothing(*found)) return wrong(name, "is not supported");
  }
  return std::nullopt;
}

void Fields::add_warning(std::string warning) {
  if (warnings_.size() < kMostWarnings)
    warnings_.push_back(std::move(warning));
  else if (warnings_.size() == kMostWarnings)
    warnings_.emplace_back("there is more to warn of");
}

void Fields::warn(std::string_view name, std::string_view what) {
  add_warning(fmt::format("`{}{}` {}", path_, name, what));
}

void Fields::look_into(std::string_view name, const Shape& shape) {
  if (const json::value* found = value(name)) look_at(*found, shape, path_ + std::string(name));
}

void Fields::look_at(const json::value& value, const Shape& shape, const std::string& path) {
  if (const json::array* list = value.if_array()) {
    for (std::size_t i = 0; i < list->size(); ++i)
      if ((*list)[i].is_object()) look_at((*list)[i], shape, fmt::format("{}[{}]", path, i));
    return;
  }
  const json::object* object = value.if_object();
  if (object == nullptr) return;
  for (const auto& member : *object) {
    const std::string_view name = member.key();
    const auto* const known = std::ranges::find(shape.members, name, &Shape::Member::name);
    const std::string place = fmt::format("{}.{}", path, printable(name, 80));
    if (warnings_.size() > kMostWarnings) return;
    if (name.empty() || known == std::end(shape.members))
      add_warning(fmt::format(
          "`{}` is unknown{}", place,
          shape.in_template ? ": only the chat template may know it" : " and was ignored"));
    else if (known->inside != nullptr)
      look_at(member.value(), *known->inside, place);
  }
}

std::vector<std::string> Fields::warnings() const {
  Fields all = *this;
  for (const auto& member : object_)
    if (!known_.contains(std::string_view(member.key())))
      all.warn(printable(std::string_view(member.key()), 80), "is unknown and was ignored");
  return all.warnings_;
}

}  // namespace strata::serve
