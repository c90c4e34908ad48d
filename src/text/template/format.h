// Python's two ways to format: "..." % values and "...".format(values).
#pragma once

#include "text/template/runtime.h"

namespace strata::jinja {

Value percent_format(Runtime& runtime, const Value& format, const Value& values);
Value brace_format(Runtime& runtime, const Value& format, const Arguments& arguments);

}  // namespace strata::jinja
