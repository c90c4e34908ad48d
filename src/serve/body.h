// A request's body: JSON, held to RFC 8259.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "serve/refusal.h"

namespace strata::serve {

// Of a body, whatever the server's memory: they take much more than their text.
constexpr std::size_t kMostBodyValues = 1 << 18;

// Whether a body that is JSON holds more values than `most`; quick, and about right: an empty list
// counts as two, and what is no JSON as anything.
bool holds_more_values(std::string_view body, std::size_t most);

// The object that a body is. 400 for anything else, beyond 128 levels or 262,144 values, and for
// a name that an object has twice; what is no JSON is told with the byte where it stops to be.
Answer<boost::json::object> parse_body(std::string_view body);

}  // namespace strata::serve
