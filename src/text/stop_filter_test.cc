#include "text/stop_filter.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

std::string stream(const std::vector<std::string>& stops, std::string_view text, std::size_t piece,
                   bool* stopped = nullptr) {
  StopFilter filter(stops);
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += piece)
    out += filter.push(text.substr(at, piece));
  out += filter.finish();
  if (stopped != nullptr) *stopped = filter.stopped();
  return out;
}

TEST(StopFilter, CutsAtTheStopStringForAnyChunking) {
  for (std::size_t piece = 1; piece < 12; ++piece) {
    bool stopped = false;
    EXPECT_EQ(stream({"own fox"}, "The quick brown fox jumps", piece, &stopped), "The quick br");
    EXPECT_TRUE(stopped);
    EXPECT_EQ(stream({"beta gamma", "zz"}, "alpha beta gamma delta", piece), "alpha ");
    EXPECT_EQ(stream({"aab"}, "aaaab", piece), "aa");
  }
}

TEST(StopFilter, WithholdsOnlyAProperPrefixSuffix) {
  StopFilter filter({"own fox"});
  EXPECT_EQ(filter.push("The quick brow"), "The quick br");
  EXPECT_EQ(filter.push("se"), "owse");
}

TEST(StopFilter, FlushesHeldTextAtTheEnd) {
  StopFilter filter({"\n", "? no"});
  EXPECT_EQ(filter.push("Really?"), "Really");
  EXPECT_EQ(filter.finish(), "?");
}

TEST(StopFilter, TakesTheOneThatIsCompleteFirst) {
  for (std::size_t piece = 1; piece < 8; ++piece) {
    EXPECT_EQ(stream({"cd", "bcde"}, "abcdef", piece), "ab");
    EXPECT_EQ(stream({"cd", "bcd"}, "abcdef", piece), "a");
  }
}

TEST(StopFilter, AgreesWithASearchOfTheWholeText) {
  // Every text of two letters, so that stop strings overlap themselves and each other.
  const std::vector<std::string> stops = {"abab", "aab", "bbbb"};
  for (unsigned bits = 0; bits < 1u << 10; ++bits) {
    std::string text;
    for (unsigned i = 0; i < 10; ++i) text += (bits >> i & 1) != 0 ? 'b' : 'a';
    std::size_t end = std::string::npos, start = text.size();
    for (const std::string& stop : stops) {
      const std::size_t at = text.find(stop);
      if (at == std::string::npos || at + stop.size() > end) continue;
      start = at + stop.size() < end ? at : std::min(start, at);
      end = at + stop.size();
    }
    for (const std::size_t piece : {1, 3, 10})
      ASSERT_EQ(stream(stops, text, piece), text.substr(0, start)) << text;
  }
}

TEST(StopFilter, IsLinearForLongStopsAndTexts) {
  // A quadratic search would need minutes.
  const std::string stop = std::string(200'000, 'a') + "b";
  const std::string text(2'000'000, 'a');
  EXPECT_EQ(stream({stop}, text, 7).size(), text.size());
}

TEST(StopFilter, WithoutStopsEverythingPassesAtOnce) {
  StopFilter filter({"", ""});
  EXPECT_EQ(filter.push("abc"), "abc");
  EXPECT_FALSE(filter.stopped());
}

}  // namespace
}  // namespace strata
