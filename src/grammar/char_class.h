// Sets of characters, and the byte sequences that spell them in UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace strata {

struct CharRange {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CharRange&) const = default;
};

// A set of characters of Unicode; surrogates are none.
class CharClass {
 public:
  CharClass() = default;
  explicit CharClass(std::vector<CharRange> ranges);  // in any order; may overlap
  static CharClass all();

  CharClass negated() const;
  CharClass operator&(const CharClass& other) const;
  CharClass operator|(const CharClass& other) const;
  CharClass operator-(const CharClass& other) const { return *this & other.negated(); }
  bool operator==(const CharClass&) const = default;

  bool contains(char32_t character) const;
  bool empty() const { return ranges_.empty(); }
  // Ascending, apart from each other.
  std::span<const CharRange> ranges() const { return ranges_; }

 private:
  std::vector<CharRange> ranges_;
};

// The characters of a text in UTF-8.
std::u32string characters_of(std::string_view text);

struct ByteRange {
  std::uint8_t first = 0;
  std::uint8_t last = 0;
  bool operator==(const ByteRange&) const = default;
};
// The spellings of some characters: one byte of each range.
struct ByteSequence {
  std::array<ByteRange, 4> ranges;
  std::size_t length = 0;
};
// All spellings of a class, ascending. Where two have different first ranges, these have no byte in
// common, and so on with what follows equal ones.
std::vector<ByteSequence> utf8_sequences(const CharClass& characters);

}  // namespace strata
