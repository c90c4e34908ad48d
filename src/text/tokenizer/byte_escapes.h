// Bytes that vocabularies spell with hexadecimal digits and backslashes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace strata {

// The value of two hexadecimal digits; nullopt where `digits` is anything else.
std::optional<unsigned char> hex_byte(std::string_view digits);

// What RWKV vocabularies hold, the inside of a bytes literal as Python writes it: \t \n \r \\ \' \"
// and \xHH. nullopt for any other escape and for one that is cut off.
std::optional<std::string> unescaped_bytes(std::string_view spelling);

}  // namespace strata
