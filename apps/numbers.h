// Numbers in what users type.
#pragma once

#include <charconv>
#include <string_view>

#include "base/printable.h"
#include "base/status.h"

namespace strata::apps {

// The whole of `text` as a T.
template <typename T>
Status parse_number(std::string_view text, T& out) {
  T value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty())
    return invalid_argument("'{}' is no fitting number", printable(text, 32));
  out = value;
  return {};
}

}  // namespace strata::apps
