#include "base/printable.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(Printable, EscapesControlsAndInvalidBytesOnly) {
  EXPECT_EQ(printable("plain, größe, 漢字, 😀"), "plain, größe, 漢字, 😀");
  EXPECT_EQ(printable("\x1b[2J\n\x7f"), "\\x1b[2J\\x0a\\x7f");
  EXPECT_EQ(printable("a\xff"
                      "b"),
            "a\\xffb");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // U+009B, which terminals obey as ESC [
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("ééé", 5), "éé...");
  EXPECT_EQ(printable("ééé", 6), "ééé");
}

TEST(Utf8, AcceptsExactlyTheWellFormedSequences) {
  for (const char* good : {"a", "\x7f", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf",
                           "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(utf8_sequence_bytes(good), std::string_view(good).size()) << good;
  // Stray and missing continuations, overlong forms, surrogates, beyond U+10FFFF.
  for (const char* bad : {"", "\x80", "\xc3", "\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80",
                          "\xf4\x90\x80\x80", "\xf0\x8f\xbf\xbf", "\xe2\x82", "\xff", "\xf8\x88"})
    EXPECT_EQ(utf8_sequence_bytes(bad), 0u);
}

TEST(Utf8, ReplacesEachInvalidByte) {
  EXPECT_EQ(replace_invalid_utf8("a\xff\xc3z\n"), "a\xef\xbf\xbd\xef\xbf\xbdz\n");
  EXPECT_EQ(replace_invalid_utf8("größe"), "größe");
}

}  // namespace
}  // namespace strata
