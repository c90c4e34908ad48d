// SentencePiece writes a space as U+2581, the lower one eighth block.
#pragma once

#include <string>
#include <string_view>

namespace strata {

constexpr std::string_view kEscapedSpace = "\xe2\x96\x81";

inline std::string escape_spaces(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  for (const char c : text) {
    if (c == ' ')
      out += kEscapedSpace;
    else
      out += c;
  }
  return out;
}

inline std::string unescape_spaces(std::string_view text) {
  std::string out;
  for (std::size_t at = text.find(kEscapedSpace); at != text.npos; at = text.find(kEscapedSpace)) {
    out += text.substr(0, at);
    out += ' ';
    text.remove_prefix(at + kEscapedSpace.size());
  }
  return out += text;
}

}  // namespace strata
