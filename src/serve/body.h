// A request's body: JSON, held to RFC 8259.
#pragma once

#include <boost/json/object.hpp>
#include <string_view>

#include "serve/refusal.h"

namespace strata::serve {

// The object that a body is. 400 for anything else, beyond 128 levels or 262,144 values, and for
// a name that an object has twice; what is no JSON is told with the byte where it stops to be.
Answer<boost::json::object> parse_body(std::string_view body);

}  // namespace strata::serve
