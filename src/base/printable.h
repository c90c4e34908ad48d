// Makes strings from files and requests safe to show.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strata {

// Length in bytes of the valid UTF-8 sequence that `text` starts with; 0 where there is none.
std::size_t utf8_sequence_bytes(std::string_view text);

// For terminals and error messages: control characters and bytes that are not UTF-8 become \xNN,
// and what exceeds `limit` bytes becomes "...".
std::string printable(std::string_view text, std::size_t limit = 512);

// For JSON: every byte that is not UTF-8 becomes U+FFFD, all else stays.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace strata
