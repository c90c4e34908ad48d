// JSON of strangers: what is missing or of another type reads as nothing.
#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/units.h"

namespace strata {

inline Result<boost::json::object> parse_json_object(std::string_view text) {
  boost::system::error_code error;
  boost::json::value value = boost::json::parse({text.data(), text.size()}, error);
  if (error || !value.is_object()) return corrupt("the answer is no JSON object");
  return std::move(value.as_object());
}

inline std::string text_of(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains({key.data(), key.size()});
  const auto* text = value != nullptr ? value->if_string() : nullptr;
  return text != nullptr ? std::string(text->data(), text->size()) : std::string();
}

inline std::optional<Bytes> natural_of(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains({key.data(), key.size()});
  if (value == nullptr) return std::nullopt;
  if (const auto* number = value->if_int64(); number != nullptr && *number >= 0)
    return static_cast<Bytes>(*number);
  return std::nullopt;
}

inline const boost::json::array* array_of(const boost::json::object& object, std::string_view key) {
  const auto* value = object.if_contains({key.data(), key.size()});
  return value != nullptr ? value->if_array() : nullptr;
}

inline const boost::json::object* object_of(const boost::json::object& object,
                                            std::string_view key) {
  const auto* value = object.if_contains({key.data(), key.size()});
  return value != nullptr ? value->if_object() : nullptr;
}

}  // namespace strata
