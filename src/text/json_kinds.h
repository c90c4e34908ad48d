// Which kinds of values a JSON schema allows, as far as its own keywords say.
#pragma once

#include <boost/json/value.hpp>

namespace strata {

// Bits.
struct JsonKinds {
  static constexpr unsigned kString = 1, kNumber = 2, kBoolean = 4, kNull = 8, kObject = 16,
                            kArray = 32, kAny = 63;
};

// Reads type, enum, const, anyOf and oneOf; kAny where these say nothing.
unsigned json_kinds(const boost::json::value& schema);
// Of a JSON text that starts with `first`.
unsigned json_kind_at(char first);

}  // namespace strata
