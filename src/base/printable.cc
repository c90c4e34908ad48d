#include "base/printable.h"

#include <fmt/format.h>

#include <cstdint>

namespace strata {
namespace {

// C0 and C1 controls and DEL: what a terminal may act on.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
}

}  // namespace

std::size_t utf8_sequence_bytes(std::string_view text) {
  if (text.empty()) return 0;
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  std::uint32_t point = first & (0x7fu >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    point = (point << 6) | (byte(i) & 0x3fu);
  }
  // Overlong forms, surrogates and points past U+10FFFF.
  if (length == 3 && (point < 0x800 || (point >= 0xd800 && point <= 0xdfff))) return 0;
  if (length == 4 && (point < 0x10000 || point > 0x10ffff)) return 0;
  return length;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_bytes(text);
    const std::size_t taken = length == 0 ? 1 : length;
    if (out.size() + taken > limit) return out + "...";
    if (length == 0 || is_control(text.substr(0, length))) {
      for (const char c : text.substr(0, taken))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(taken);
  }
  return out;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_bytes(text);
    out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace strata
