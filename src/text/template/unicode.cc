#include "text/template/unicode.h"

#include "base/printable.h"

namespace strata::jinja {
namespace {

bool between(char32_t c, char32_t first, char32_t last) { return first <= c && c <= last; }

// Blocks where an upper-case letter is followed by its lower-case one.
bool in_even_pairs(char32_t c) {
  return (between(c, 0x100, 0x137) && c != 0x130 && c != 0x131) || between(c, 0x14A, 0x177) ||
         between(c, 0x1E00, 0x1E95) || between(c, 0x1EA0, 0x1EFF) || between(c, 0x460, 0x481) ||
         between(c, 0x48A, 0x4BF) || between(c, 0x4D0, 0x52F) || between(c, 0x3D8, 0x3EF);
}
bool in_odd_pairs(char32_t c) {
  return between(c, 0x139, 0x148) || between(c, 0x179, 0x17E) || between(c, 0x4C1, 0x4CE);
}

}  // namespace

CodePoint code_point_at(std::string_view text, std::size_t offset) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  switch (utf8_sequence_bytes(text.substr(offset))) {
    case 2: return {((first & 0x1F) << 6) | (byte(1) & 0x3FU), 2};
    case 3: return {((first & 0x0F) << 12) | ((byte(1) & 0x3FU) << 6) | (byte(2) & 0x3FU), 3};
    case 4:
      return {((first & 0x07) << 18) | ((byte(1) & 0x3FU) << 12) | ((byte(2) & 0x3FU) << 6) |
                  (byte(3) & 0x3FU),
              4};
    default: return {0xDC00 + first, 1};
  }
}

std::size_t previous_code_point(std::string_view text, std::size_t end) {
  for (std::size_t back = 2; back <= 4 && back <= end; ++back) {
    if (code_point_at(text, end - back).bytes == back) return end - back;
  }
  return end - 1;
}

std::size_t count_code_points(std::string_view text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).bytes) ++count;
  return count;
}

std::size_t offset_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  for (; index > 0 && at < text.size(); --index) at += code_point_at(text, at).bytes;
  return at;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (between(c, 0xDC80, 0xDCFF)) return put(c - 0xDC00);
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else {
    if (c < 0x10000) {
      put(0xE0 | (c >> 12));
    } else {
      put(0xF0 | (c >> 18));
      put(0x80 | ((c >> 12) & 0x3F));
    }
    put(0x80 | ((c >> 6) & 0x3F));
  }
  put(0x80 | (c & 0x3F));
}

bool is_space(char32_t c) {
  return between(c, 9, 13) || between(c, 0x1C, 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         between(c, 0x2000, 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_line_break(char32_t c) {
  return between(c, 10, 13) || between(c, 0x1C, 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029;
}

char32_t to_upper(char32_t c) {
  if (c < 0x80) return between(c, 'a', 'z') ? c - 32 : c;
  if (c == 0xB5) return 0x39C;
  if (between(c, 0xE0, 0xFE) && c != 0xF7) return c - 32;
  if (c == 0xFF) return 0x178;
  if (c == 0x131) return 'I';
  if (in_even_pairs(c)) return c & ~char32_t{1};
  if (in_odd_pairs(c)) return c % 2 == 0 ? c - 1 : c;
  if (c == 0x3AC) return 0x386;
  if (between(c, 0x3AD, 0x3AF)) return c - 37;
  if (c == 0x3C2) return 0x3A3;
  if (between(c, 0x3B1, 0x3CB)) return c - 32;
  if (c == 0x3CC) return 0x38C;
  if (between(c, 0x3CD, 0x3CE)) return c - 63;
  if (between(c, 0x430, 0x44F)) return c - 32;
  if (between(c, 0x450, 0x45F)) return c - 80;
  if (between(c, 0x561, 0x586)) return c - 48;
  return c;
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return between(c, 'A', 'Z') ? c + 32 : c;
  if (between(c, 0xC0, 0xDE) && c != 0xD7) return c + 32;
  if (c == 0x178) return 0xFF;
  if (c == 0x1E9E) return 0xDF;
  if (in_even_pairs(c)) return c | 1;
  if (in_odd_pairs(c)) return c % 2 == 1 ? c + 1 : c;
  if (c == 0x386) return 0x3AC;
  if (between(c, 0x388, 0x38A)) return c + 37;
  if (between(c, 0x391, 0x3AB) && c != 0x3A2) return c + 32;
  if (c == 0x38C) return 0x3CC;
  if (between(c, 0x38E, 0x38F)) return c + 63;
  if (between(c, 0x410, 0x42F)) return c + 32;
  if (between(c, 0x400, 0x40F)) return c + 80;
  if (between(c, 0x531, 0x556)) return c + 48;
  return c;
}

bool is_upper(char32_t c) { return to_lower(c) != c; }
bool is_lower(char32_t c) { return to_upper(c) != c || c == 0xDF; }

bool is_letter(char32_t c) {
  if (c < 0x80) return between(c, 'a', 'z') || between(c, 'A', 'Z');
  if (c < 0xC0) return c == 0xAA || c == 0xB5 || c == 0xBA;
  return c != 0xD7 && c != 0xF7 && !is_space(c) && !between(c, 0x2000, 0x2BFF) &&
         !between(c, 0x3000, 0x303F) && !between(c, 0xDC80, 0xDCFF) &&
         !between(c, 0xFE00, 0xFE6F) && !between(c, 0x1F000, 0x1FAFF);
}

bool is_digit(char32_t c) { return between(c, '0', '9'); }

}  // namespace strata::jinja
