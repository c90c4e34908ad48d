// The filters by kind; find_filter() looks through all.
#pragma once

#include <string_view>

#include "text/template/builtins.h"

namespace strata::jinja {

FilterFunction find_text_filter(std::string_view name);
FilterFunction find_value_filter(std::string_view name);
FilterFunction find_collection_filter(std::string_view name);
FilterFunction find_selection_filter(std::string_view name);

// Reads the dotted `path` of an item, as the `attribute` argument of filters gives it.
Value attribute_at_path(Runtime& runtime, const Value& item, const Value& path);

// What sorting and grouping compare: strings in lower case unless told otherwise.
Value comparison_key(Runtime& runtime, Value value, bool case_sensitive);

}  // namespace strata::jinja
