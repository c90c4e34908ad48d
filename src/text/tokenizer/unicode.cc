#include "text/tokenizer/unicode.h"

#include <algorithm>
#include <iterator>

#include "text/tokenizer/unicode_tables.h"

namespace strata {
namespace {

constexpr CharacterRange kWhiteSpace[] = {
    {0x09, 0x0d},     {0x20, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};

// One block starts at 0x2b920 and not at its 0x2b820: the tokenizer that models are used with has
// it so.
constexpr CharacterRange kChinese[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                       {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                       {0x2b920, 0x2ceaf}, {0x2f800, 0x2fa1f}};

constexpr char32_t kFirstSyllable = 0xac00;
constexpr char32_t kLastSyllable = 0xd7a3;
constexpr char32_t kVowels = 21;
constexpr char32_t kTails = 28;  // none among them

template <std::size_t N>
bool contains(const CharacterRange (&ranges)[N], char32_t c) {
  const auto range = std::ranges::lower_bound(ranges, c, {}, &CharacterRange::last);
  return range != std::end(ranges) && range->first <= c;
}

template <typename Row, std::size_t N>
const Row* find(const Row (&rows)[N], char32_t c) {
  const auto row = std::ranges::lower_bound(rows, c, {}, &Row::from);
  return row != std::end(rows) && row->from == c ? row : nullptr;
}

}  // namespace

bool is_white_space(char32_t c) { return contains(kWhiteSpace, c); }
bool is_other(char32_t c) { return contains(kOther, c); }
bool is_nonspacing_mark(char32_t c) { return contains(kNonspacingMarks, c); }
bool is_chinese_character(char32_t c) { return contains(kChinese, c); }

bool is_punctuation(char32_t c) {
  if (c >= 0x80) return contains(kPunctuation, c);
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

char32_t to_lower(char32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  const LowerCase* row = find(kLowerCases, c);
  return row == nullptr ? c : row->to;
}

std::u32string without_accents(char32_t c) {
  if (c >= kFirstSyllable && c <= kLastSyllable) {
    const char32_t index = c - kFirstSyllable;
    std::u32string letters = {0x1100 + index / (kVowels * kTails),
                              0x1161 + index / kTails % kVowels};
    if (index % kTails != 0) letters.push_back(0x11a7 + index % kTails);
    return letters;
  }
  if (is_nonspacing_mark(c)) return {};
  const BaseCharacters* row = find(kBaseCharacters, c);
  if (row == nullptr) return {c};
  return {std::begin(row->to), std::ranges::find(row->to, char32_t{0})};
}

}  // namespace strata
