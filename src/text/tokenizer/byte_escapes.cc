#include "text/tokenizer/byte_escapes.h"

#include <charconv>

namespace strata {

std::optional<unsigned char> hex_byte(std::string_view digits) {
  unsigned char value = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, value, 16);
  if (digits.size() != 2 || parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

std::optional<std::string> unescaped_bytes(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const char c = spelling[0];
    spelling.remove_prefix(1);
    if (c != '\\') {
      bytes += c;
      continue;
    }
    if (spelling.empty()) return std::nullopt;
    const char escaped = spelling[0];
    spelling.remove_prefix(1);
    switch (escaped) {
      case 't': bytes += '\t'; break;
      case 'n': bytes += '\n'; break;
      case 'r': bytes += '\r'; break;
      case '\\':
      case '\'':
      case '"': bytes += escaped; break;
      case 'x': {
        const auto value = hex_byte(spelling.substr(0, 2));
        if (!value) return std::nullopt;
        bytes += static_cast<char>(*value);
        spelling.remove_prefix(2);
        break;
      }
      default: return std::nullopt;
    }
  }
  return bytes;
}

}  // namespace strata
