#include "text/tokenizer/charsmap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/tokenizer/test_support.h"

namespace strata {
namespace {

using testing::charsmap;
using ::testing::HasSubstr;

std::uint32_t branch(unsigned char label, std::uint32_t offset, bool has_value = false) {
  return offset << 10 | (has_value ? 1u << 8 : 0u) | label;
}
constexpr std::uint32_t kValue = 1u << 31;
constexpr std::uint32_t kA = 4 ^ 'a';
constexpr std::uint32_t kBelowA = kA ^ 2;

// The keys "a" and "ab". A child of unit `at` lies at `at` ^ its offset ^ its byte.
std::vector<std::uint32_t> two_rules() {
  std::vector<std::uint32_t> units(256);
  units[0] = branch(0, 4);
  units[kA] = branch('a', 2, true);
  units[kBelowA] = kValue | 0;
  units[kBelowA ^ 'b'] = branch('b', 4, true);
  units[kBelowA ^ 'b' ^ 4] = kValue | 3;
  return units;
}

const std::string kReplacements("AA\0B\0", 5);

Charsmap read(const std::vector<std::uint32_t>& units, std::string_view replacements) {
  auto rules = Charsmap::read(charsmap(units, replacements));
  EXPECT_TRUE(rules.ok()) << rules.status().message();
  return std::move(rules).value();
}

TEST(Charsmap, TheLongestRuleApplies) {
  const Charsmap rules = read(two_rules(), kReplacements);
  const auto match = [&](std::string_view text) {
    const auto found = rules.match(text).value();
    return std::pair(found.bytes, std::string(found.replacement));
  };
  EXPECT_EQ(match("ac"), std::pair(std::size_t{1}, std::string("AA")));
  EXPECT_EQ(match("abc"), std::pair(std::size_t{2}, std::string("B")));
  EXPECT_EQ(match("c").first, 0u);
  EXPECT_EQ(match(std::string_view("\0a", 2)).first, 0u);
  EXPECT_EQ(match("").first, 0u);
  EXPECT_EQ(Charsmap().match("a").value().bytes, 0u);
}

std::string refusal(const MetadataArray& array) {
  const auto rules = Charsmap::read(array);
  return rules.ok() ? "accepted" : rules.status().message();
}

TEST(Charsmap, SizesThatDoNotFitAreRefused) {
  EXPECT_THAT(refusal(charsmap(two_rules(), "")), HasSubstr("no end"));
  EXPECT_THAT(refusal(charsmap(two_rules(), "open")), HasSubstr("no end"));
  EXPECT_THAT(refusal(charsmap({}, kReplacements)), HasSubstr("does not fit"));
  EXPECT_THAT(refusal(charsmap(two_rules(), std::string(1025, 'x') + '\0')), HasSubstr("1025"));
  MetadataArray array = charsmap(two_rules(), kReplacements);
  for (const std::size_t bytes : {1u, 3u, 4u, 500u, 1028u}) {
    array.numbers.resize(std::min(array.numbers.size(), bytes));
    array.count = array.numbers.size();
    EXPECT_NE(refusal(array), "accepted") << bytes;
    array = charsmap(two_rules(), kReplacements);
  }
  for (const char odd : {'\x01', '\xff'}) {  // 1025 bytes, and many more than there are
    array.numbers[odd == '\x01' ? 0 : 3] = odd;
    EXPECT_THAT(refusal(array), HasSubstr("does not fit"));
  }
  array.element_type = ValueType::kFloat32;
  EXPECT_THAT(refusal(array), HasSubstr("UINT8"));
}

TEST(Charsmap, ATrieThatLeadsOutsideItselfIsCorrupt) {
  for (const auto& [index, unit] : std::initializer_list<std::pair<std::size_t, std::uint32_t>>{
           {0, branch(0, 0x1fffff)},           // the root's children
           {kA, branch('a', 0x1fffff, true)},  // the value of "a"
           {kBelowA, kValue | 5},              // its replacement
           {kBelowA, kValue | 0x7fffffff}}) {
    std::vector<std::uint32_t> units = two_rules();
    units[index] = unit;
    const auto match = read(units, kReplacements).match("ab");
    ASSERT_FALSE(match.ok());
    EXPECT_EQ(match.status().code(), StatusCode::kCorrupt);
  }
}

TEST(Charsmap, ATrieInACircleEnds) {
  std::vector<std::uint32_t> units = two_rules();
  units[kA] = branch('a', 'a');  // to itself, for any number of them
  EXPECT_EQ(read(units, kReplacements).match(std::string(1 << 20, 'a')).value().bytes, 0u);
}

}  // namespace
}  // namespace strata
