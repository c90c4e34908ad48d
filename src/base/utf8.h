// UTF-8 as the Unicode standard defines it: no overlong forms, no surrogates, at most U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace strata {

struct Utf8Prefix {
  enum class Kind {
    kCharacter,   // `bytes` form one character
    kIncomplete,  // all of the text; more bytes may make it a character
    kInvalid,     // `bytes` (at least 1) can never become a character
  };
  Kind kind = Kind::kInvalid;
  std::size_t bytes = 0;
  char32_t character = 0;  // for kCharacter
};

// Classifies how `text` starts. An invalid prefix is a "maximal subpart" (Unicode 15, section 3.9),
// so that replacing each by one U+FFFD gives what browsers show. REQUIRES: text is not empty.
Utf8Prefix utf8_prefix(std::string_view text);

// Bytes of the character that `text` starts with; 1 where it starts with none. REQUIRES: as above.
inline std::size_t utf8_step(std::string_view text) {
  const Utf8Prefix prefix = utf8_prefix(text);
  return prefix.kind == Utf8Prefix::Kind::kCharacter ? prefix.bytes : 1;
}

// Bytes of the longest prefix that consists of whole characters.
std::size_t utf8_valid_bytes(std::string_view text);

// REQUIRES: `character` is at most U+10FFFF.
void append_utf8(char32_t character, std::string& out);

}  // namespace strata
