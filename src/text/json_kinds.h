// Which kinds of values a JSON schema allows, as far as its keywords say.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <optional>
#include <string_view>

namespace strata {

// Bits.
struct JsonKinds {
  static constexpr unsigned kString = 1, kInteger = 2, kFraction = 4, kTrue = 8, kFalse = 16,
                            kNull = 32, kObject = 64, kArray = 128, kAny = 255;
  static constexpr unsigned kNumber = kInteger | kFraction, kBoolean = kTrue | kFalse;
};

// Reads type, enum, const, anyOf, oneOf, allOf and $ref into `document`, of which `schema` is a
// part; without these, the types that keywords speak of. kAny where nothing says more.
unsigned json_kinds(const boost::json::value& schema, const boost::json::object& document);
// Of the member `key` of the objects that `document` describes, or of members that it does not
// name.
unsigned member_kinds(const boost::json::object& document, std::optional<std::string_view> key);
// Of a JSON text; numbers are integers where they are written as such.
unsigned json_kind_of(std::string_view json);

}  // namespace strata
