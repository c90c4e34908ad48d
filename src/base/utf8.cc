#include "base/utf8.h"

#include <cstring>

namespace strata {
namespace {

struct Lead {
  std::size_t length = 0;           // 0: no character starts with this byte
  unsigned char second_low = 0x80;  // the allowed range of the second byte
  unsigned char second_high = 0xbf;
};

// Table 3-7 of the Unicode standard.
Lead classify_lead(unsigned char first) {
  if (first < 0x80) return {1};
  if (first < 0xc2 || first > 0xf4) return {0};
  if (first < 0xe0) return {2};
  if (first == 0xe0) return {3, 0xa0, 0xbf};
  if (first == 0xed) return {3, 0x80, 0x9f};
  if (first < 0xf0) return {3};
  if (first == 0xf0) return {4, 0x90, 0xbf};
  if (first == 0xf4) return {4, 0x80, 0x8f};
  return {4};
}

}  // namespace

Utf8Prefix utf8_prefix(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const Lead lead = classify_lead(byte(0));
  if (lead.length == 0) return {Utf8Prefix::Kind::kInvalid, 1};
  if (lead.length == 1) return {Utf8Prefix::Kind::kCharacter, 1, byte(0)};
  char32_t character = byte(0) & (0x7fu >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {Utf8Prefix::Kind::kIncomplete, i};
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xbf;
    if (byte(i) < low || byte(i) > high) return {Utf8Prefix::Kind::kInvalid, i};
    character = (character << 6) | (byte(i) & 0x3fu);
  }
  return {Utf8Prefix::Kind::kCharacter, lead.length, character};
}

std::size_t utf8_valid_bytes(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Eight ASCII bytes at a time.
    std::uint64_t word = 0;
    if (at + sizeof(word) <= text.size()) {
      std::memcpy(&word, text.data() + at, sizeof(word));
      if ((word & 0x8080808080808080u) == 0) {
        at += sizeof(word);
        continue;
      }
    }
    const Utf8Prefix prefix = utf8_prefix(text.substr(at));
    if (prefix.kind != Utf8Prefix::Kind::kCharacter) return at;
    at += prefix.bytes;
  }
  return at;
}

void append_utf8(char32_t character, std::string& out) {
  const auto put = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
  if (character < 0x80) {
    put(character);
  } else if (character < 0x800) {
    put(0xc0 | (character >> 6));
    put(0x80 | (character & 0x3f));
  } else if (character < 0x10000) {
    put(0xe0 | (character >> 12));
    put(0x80 | ((character >> 6) & 0x3f));
    put(0x80 | (character & 0x3f));
  } else {
    put(0xf0 | (character >> 18));
    put(0x80 | ((character >> 12) & 0x3f));
    put(0x80 | ((character >> 6) & 0x3f));
    put(0x80 | (character & 0x3f));
  }
}

}  // namespace strata
