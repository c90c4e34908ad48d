// JSON in and out: inputs become values, and tojson writes what Python's json.dumps writes.
#pragma once

#include <boost/json/value.hpp>
#include <optional>

#include "text/template/runtime.h"

namespace strata::jinja {

// `content` marks the strings of the result. Throws on depth.
Value from_json(Runtime& runtime, const boost::json::value& json, bool content);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<Text> indent;  // of one level; none: one line
  Text item_separator{", ", true};
  Text key_separator{": ", true};
};

Text to_json(Runtime& runtime, const Value& value, const JsonStyle& style);

}  // namespace strata::jinja
