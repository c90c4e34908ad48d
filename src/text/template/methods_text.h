// What the methods of strings and the filters of the same names share.
#pragma once

#include <cstdint>
#include <optional>

#include "text/template/runtime.h"

namespace strata::jinja {

Text upper(Runtime& runtime, const Text& text);
Text lower(Runtime& runtime, const Text& text);
Text capitalize(Runtime& runtime, const Text& text);

enum class Side { kLeft = 1, kRight = 2, kBoth = 3 };
// Without the code points of `characters` at its ends; no characters given: white space.
Text strip(Runtime& runtime, const Text& text, std::optional<std::string_view> characters,
           Side side);

// count < 0: all.
Text replace(Runtime& runtime, const Text& text, const Text& from, const Text& to,
             std::int64_t count);

// A line of a text, by byte offsets: it ends before its line break, the next starts at `next`.
struct Line {
  std::size_t start, end, next;
};
// The line at `start`. REQUIRES: start < text.size().
Line line_at(std::string_view text, std::size_t start);

// Byte offset of the first `needle` at or after `from`; npos. Linear time.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from);

}  // namespace strata::jinja
