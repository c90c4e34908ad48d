// The alphabet in which byte-level vocabularies spell bytes: printable Latin-1 characters stand for
// themselves, the other bytes for U+0100 and up, in order. Source: OpenAI's GPT-2 encoder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata {

char32_t byte_to_letter(unsigned char byte);

// The bytes that `spelling` stands for; nullopt where a character is not of the alphabet.
std::optional<std::string> spelled_bytes(std::string_view spelling);

}  // namespace strata
