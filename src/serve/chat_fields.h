// Messages and tools of a request, which all dialects have alike.
#pragma once

#include <optional>

#include "serve/fields.h"
#include "serve/generation.h"
#include "serve/refusal.h"

namespace strata::serve {

// REQUIRES: there is a field `messages`.
std::optional<Refusal> take_messages(Fields& fields, Generation& generation);
// `stop`; empty texts, which could stop nothing, are left out with a warning.
std::optional<Refusal> take_stops(Fields& fields, Generation& generation);
// `tools`, if any. A schema that is none is refused, one that cannot be held only where it must be.
std::optional<Refusal> take_tools(Fields& fields, Generation& generation);

}  // namespace strata::serve
