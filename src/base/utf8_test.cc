#include "base/utf8.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

using Kind = Utf8Prefix::Kind;

TEST(Utf8, EveryCharacterSurvivesEncodingAndDecoding) {
  for (char32_t character = 0; character <= 0x10ffff; ++character) {
    if (character >= 0xd800 && character <= 0xdfff) continue;
    std::string text;
    append_utf8(character, text);
    const Utf8Prefix prefix = utf8_prefix(text);
    ASSERT_EQ(prefix.kind, Kind::kCharacter) << static_cast<std::uint32_t>(character);
    ASSERT_EQ(prefix.bytes, text.size());
    ASSERT_EQ(prefix.character, character);
    for (std::size_t cut = 1; cut < text.size(); ++cut)
      ASSERT_EQ(utf8_prefix(std::string_view(text).substr(0, cut)).kind, Kind::kIncomplete);
  }
}

TEST(Utf8, OverlongFormsSurrogatesAndTooLargeValuesAreInvalidAtOnce) {
  for (const std::string_view text : {"\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80", "\xf8\x88\x80\x80", "\x80", "\xff"}) {
    const Utf8Prefix prefix = utf8_prefix(text);
    EXPECT_EQ(prefix.kind, Kind::kInvalid);
    EXPECT_EQ(prefix.bytes, 1u);
    EXPECT_EQ(utf8_valid_bytes(text), 0u);
  }
}

TEST(Utf8, AnInvalidPrefixIsTheMaximalSubpart) {
  EXPECT_EQ(utf8_prefix("\xf0\x9f\x98x").bytes, 3u);
  EXPECT_EQ(utf8_prefix("\xe2\x96x").bytes, 2u);
  EXPECT_EQ(utf8_prefix("\xe2x").bytes, 1u);
}

TEST(Utf8, ValidBytesStopAtTheFirstBadOrIncompleteSequence) {
  EXPECT_EQ(utf8_valid_bytes(""), 0u);
  EXPECT_EQ(utf8_valid_bytes("plain ascii, longer than a word"), 31u);
  EXPECT_EQ(utf8_valid_bytes("12345678\xc3\xbc\xff..."), 10u);
  EXPECT_EQ(utf8_valid_bytes("ab\xe2\x96"), 2u);
}

}  // namespace
}  // namespace strata
