// The little of Unicode that Python's string methods need: UTF-8 stepping, white space, and the
// simple case mappings of Latin, Greek, Cyrillic and Armenian.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata::jinja {

struct CodePoint {
  char32_t value;     // a byte that is not UTF-8 stands for itself plus 0xDC00
  std::size_t bytes;  // 1..4
};

// REQUIRES: offset < text.size().
CodePoint code_point_at(std::string_view text, std::size_t offset);
// The start of the code point that ends at `end`. REQUIRES: 0 < end <= text.size().
std::size_t previous_code_point(std::string_view text, std::size_t end);
std::size_t count_code_points(std::string_view text);
// Byte offset of code point `index`; text.size() where there are fewer.
std::size_t offset_of(std::string_view text, std::size_t index);
void append_utf8(std::string& out, char32_t code_point);

bool is_space(char32_t c);       // str.isspace
bool is_line_break(char32_t c);  // where str.splitlines splits
char32_t to_upper(char32_t c);   // one to one: U+00DF stays
char32_t to_lower(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_letter(char32_t c);  // ASCII exactly; above it, all but spaces and punctuation blocks
bool is_digit(char32_t c);   // ASCII only

}  // namespace strata::jinja
