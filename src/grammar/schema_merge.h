// Schemas as objects of JSON: what they hold, and two as one.
#pragma once

#include <boost/json/object.hpp>
#include <string>
#include <string_view>

#include "base/status.h"

namespace strata {

// As some programs write keywords that are not set.
inline bool is_absent(std::string_view key, const boost::json::value& value) {
  return value.is_null() && key != "const";
}

inline const boost::json::value* find_key(const boost::json::object& object, std::string_view key) {
  const boost::json::value* const found = object.if_contains({key.data(), key.size()});
  return found == nullptr || is_absent(key, *found) ? nullptr : found;
}

inline std::string_view view(boost::json::string_view text) { return {text.data(), text.size()}; }

// A step of a JSON pointer (RFC 6901), short enough to be shown.
std::string escaped_step(std::string_view key);

// `type` is a name of the keyword's.
bool is_of_type(const boost::json::value& value, std::string_view type);
// Whether all numbers are what a double holds.
bool is_finite(const boost::json::value& value);

enum class KeywordUse : unsigned char {
  kAnnotation,  // constrains nothing
  kAny,         // constrains values of all types
  kObject,      // values of one type
  kArray,
  kString,
  kNumber,
  kUnsupported,  // constrains, and is not read
};
KeywordUse use_of_keyword(std::string_view keyword);
// Whether anything does but the keyword `but`.
bool constrains(const boost::json::object& schema, std::string_view but);

// Of `pattern`, `format` or `multipleOf`, of which a merged schema may have several.
boost::json::array values_of(const boost::json::object& schema, std::string_view key);

// A schema of the values that both describe. Errors name the keyword.
Result<boost::json::object> merged_schema(boost::json::object a, const boost::json::object& b);

}  // namespace strata
