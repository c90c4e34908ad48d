// Jinja's filters, tests and global functions, and the methods of Python's values.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "text/template/runtime.h"

namespace strata::jinja {

using FilterFunction = Value (*)(Runtime& runtime, const Value& input, const Arguments& arguments);
using TestFunction = bool (*)(Runtime& runtime, const Value& input, const Arguments& arguments);
using Method = Value (*)(Runtime& runtime, const Value& self, const Arguments& arguments);

// Null where there is none of that name.
FilterFunction find_filter(std::string_view name);
TestFunction find_test(std::string_view name);
Method find_method(const Value& self, std::string_view name);

// range, dict, namespace, cycler, joiner, raise_exception, and strftime_now where the time is
// known.
std::vector<std::pair<std::string_view, Value>> make_globals(Runtime& runtime);

}  // namespace strata::jinja
