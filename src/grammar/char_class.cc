#include "grammar/char_class.h"

#include <algorithm>
#include <string>

#include "base/utf8.h"

namespace strata {
namespace {

constexpr char32_t kLast = 0x10ffff;
constexpr CharRange kSurrogates = {0xd800, 0xdfff};

// REQUIRES: both ends have spellings of the same length.
void append_sequences(CharRange range, std::vector<ByteSequence>& out) {
  // A block of 64^n characters shares its leading bytes; ranges are cut at the borders of blocks.
  for (const char32_t block : {0x40u, 0x1000u, 0x40000u}) {
    const char32_t rest = block - 1;
    if ((range.first & ~rest) == (range.last & ~rest) || range.last < 0x80) continue;
    if ((range.first & rest) != 0) {
      append_sequences({range.first, range.first | rest}, out);
      return append_sequences({(range.first | rest) + 1, range.last}, out);
    }
    if ((range.last & rest) != rest) {
      append_sequences({range.first, (range.last & ~rest) - 1}, out);
      return append_sequences({range.last & ~rest, range.last}, out);
    }
  }
  std::string low, high;
  append_utf8(range.first, low);
  append_utf8(range.last, high);
  ByteSequence sequence;
  sequence.length = low.size();
  for (std::size_t i = 0; i < low.size(); ++i)
    sequence.ranges[i] = {static_cast<std::uint8_t>(low[i]), static_cast<std::uint8_t>(high[i])};
  out.push_back(sequence);
}

}  // namespace

CharClass::CharClass(std::vector<CharRange> ranges) {
  std::ranges::sort(ranges, {}, &CharRange::first);
  const auto add = [&](CharRange range) {
    if (range.first > range.last) return;
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  };
  for (const CharRange& range : ranges) {
    add({range.first, std::min<char32_t>(range.last, kSurrogates.first - 1)});
    add({std::max<char32_t>(range.first, kSurrogates.last + 1), std::min(range.last, kLast)});
  }
}

CharClass CharClass::all() { return CharClass({{0, kLast}}); }

CharClass CharClass::negated() const {
  std::vector<CharRange> gaps;
  char32_t next = 0;
  for (const CharRange& range : ranges_) {
    if (range.first > next) gaps.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLast) gaps.push_back({next, kLast});
  return CharClass(std::move(gaps));
}

CharClass CharClass::operator&(const CharClass& other) const {
  std::vector<CharRange> common;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    common.push_back({std::max(a->first, b->first), std::min(a->last, b->last)});
    if (common.back().first > common.back().last) common.pop_back();
    if (a->last < b->last)
      ++a;
    else
      ++b;
  }
  return CharClass(std::move(common));
}

CharClass CharClass::operator|(const CharClass& other) const {
  std::vector<CharRange> both = ranges_;
  both.insert(both.end(), other.ranges_.begin(), other.ranges_.end());
  return CharClass(std::move(both));
}

bool CharClass::contains(char32_t character) const {
  const auto range = std::ranges::lower_bound(ranges_, character, {}, &CharRange::last);
  return range != ranges_.end() && range->first <= character;
}

std::vector<ByteSequence> utf8_sequences(const CharClass& characters) {
  constexpr std::array<CharRange, 4> kLengths = {
      {{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xffff}, {0x10000, kLast}}};
  std::vector<ByteSequence> out;
  for (const CharRange& range : characters.ranges())
    for (const CharRange& length : kLengths)
      if (range.first <= length.last && length.first <= range.last)
        append_sequences({std::max(range.first, length.first), std::min(range.last, length.last)},
                         out);
  return out;
}

std::u32string characters_of(std::string_view text) {
  std::u32string out;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Prefix prefix = utf8_prefix(text.substr(i));
    out += prefix.character;
    i += prefix.bytes;
  }
  return out;
}

}  // namespace strata
