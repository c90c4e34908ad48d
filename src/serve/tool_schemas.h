// The schemas of a request's tools.
#pragma once

#include <optional>

#include "serve/fields.h"
#include "serve/refusal.h"

namespace strata::serve {

// Refuses `tools` whose schemas are none, or together too much to read; what is no tool is left to
// take_tools().
std::optional<Refusal> check_tool_schemas(Fields& fields);

}  // namespace strata::serve
