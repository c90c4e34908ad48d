#include "text/tokenizer/byte_alphabet.h"

#include <array>

#include "base/utf8.h"

namespace strata {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

constexpr std::array<char32_t, 256> make_letters() {
  std::array<char32_t, 256> letters{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte)
    letters[byte] = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
  return letters;
}

constexpr std::array<char32_t, 256> kLetters = make_letters();
constexpr std::size_t kLetterEnd = 0x100 + 68;  // 68 bytes do not stand for themselves

constexpr std::array<std::int16_t, kLetterEnd> make_bytes() {
  std::array<std::int16_t, kLetterEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (unsigned byte = 0; byte < 256; ++byte)
    bytes[kLetters[byte]] = static_cast<std::int16_t>(byte);
  return bytes;
}

constexpr std::array<std::int16_t, kLetterEnd> kBytes = make_bytes();

}  // namespace

char32_t byte_to_letter(unsigned char byte) { return kLetters[byte]; }

std::optional<std::string> spelled_bytes(std::string_view spelling) {
  std::string bytes;
  while (!spelling.empty()) {
    const Utf8Prefix prefix = utf8_prefix(spelling);
    if (prefix.kind != Utf8Prefix::Kind::kCharacter || prefix.character >= kLetterEnd ||
        kBytes[prefix.character] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(kBytes[prefix.character]));
    spelling.remove_prefix(prefix.bytes);
  }
  return bytes;
}

}  // namespace strata
