#include "text/json_scanner.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

namespace strata {
namespace {

TEST(JsonScanner, AgreesWithAParserOfWholeTexts) {
  const std::vector<std::string_view> parts = {
      "{", "}", "[", "]", ",", ":",      "\"",   "\"a\"", "\\",   "\\u00e9", "\\n", "0",
      "1", "-", ".", "e", "+", "1.5e-3", "true", "false", "null", " ",       "\n",  "é"};
  std::mt19937 random(3);
  int accepted = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string text;
    for (std::size_t count = 1 + random() % 7; count > 0; --count)
      text += parts[random() % parts.size()];
    boost::system::error_code error;
    boost::json::parse(text, error);
    const auto strict = strict_json(text);
    // Control characters are told apart only in strings.
    if (text.find('\n') == std::string::npos) {
      ASSERT_EQ(strict.has_value(), !error) << text;
    }
    if (!strict) continue;
    ++accepted;
    boost::json::parse(*strict, error);
    ASSERT_FALSE(error) << text;
  }
  EXPECT_GT(accepted, 1000);
}

TEST(JsonScanner, EscapesControlCharactersInStringsOnly) {
  EXPECT_EQ(strict_json(" {\"a\n\": \n\"\x01\"} "), "{\"a\\n\": \n\"\\u0001\"}");
  EXPECT_EQ(json_quoted("a\"\\\n\x02"), R"("a\"\\\n\u0002")");
}

TEST(JsonScanner, RefusesWhatIsTooDeep) {
  const std::string open(JsonScanner::kMaxDepth, '['), close(JsonScanner::kMaxDepth, ']');
  EXPECT_TRUE(strict_json(open + close));
  EXPECT_FALSE(strict_json("[" + open + close + "]"));
}

TEST(JsonScanner, ShowsTheEndOfANumberOnlyBehindIt) {
  JsonScanner scanner;
  EXPECT_EQ(scanner.push('1'), JsonScanner::Step::kMore);
  EXPECT_TRUE(scanner.whole());
  EXPECT_EQ(scanner.push(','), JsonScanner::Step::kDoneBefore);
}

}  // namespace
}  // namespace strata
