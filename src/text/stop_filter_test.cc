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

TEST(StopFilter, TakesTheEarliestOfSeveral) {
  EXPECT_EQ(stream({"cd", "bcde"}, "abcdef", 1), "ab");
  EXPECT_EQ(stream({"cd", "bcde"}, "abcdef", 6), "a");
}

TEST(StopFilter, WithoutStopsEverythingPassesAtOnce) {
  StopFilter filter({"", ""});
  EXPECT_EQ(filter.push("abc"), "abc");
  EXPECT_FALSE(filter.stopped());
}

}  // namespace
}  // namespace strata
