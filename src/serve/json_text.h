// Small pieces of JSON text.
#pragma once

#include <boost/json.hpp>
#include <string>
#include <string_view>

namespace strata::serve {

// With quotes. The text must be UTF-8.
inline std::string quoted(std::string_view text) {
  return boost::json::serialize(boost::json::string_view(text.data(), text.size()));
}

}  // namespace strata::serve
