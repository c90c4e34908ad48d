// The tables of methods, and what looks into such tables.
#pragma once

#include <string_view>
#include <utility>

#include "text/template/builtins.h"

namespace strata::jinja {

Method find_string_method(std::string_view name);

// str.isupper and str.islower.
bool has_case(Runtime& runtime, const Text& text, bool upper_case);

// The function of that name in a table; null where there is none.
template <typename Function, std::size_t kCount>
Function find_named(const std::pair<std::string_view, Function> (&table)[kCount],
                    std::string_view name) {
  for (const auto& [known, function] : table) {
    if (known == name) return function;
  }
  return nullptr;
}

}  // namespace strata::jinja
