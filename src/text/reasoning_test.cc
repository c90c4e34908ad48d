#include "text/reasoning.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

struct Split {
  std::string reasoning, content;
  bool operator==(const Split&) const = default;
};
void PrintTo(const Split& split, std::ostream* out) {
  *out << "reasoning '" << split.reasoning << "', content '" << split.content << "'";
}

// Feeds `text` in pieces of `size` bytes.
Split split(std::string_view text, std::size_t size, bool starts_inside = false,
            const ThinkingTags& tags = {"<think>", "</think>"}) {
  ReasoningSplitter splitter(tags, starts_inside);
  Split out;
  const auto take = [&](const ReasoningSplitter::Piece& piece) {
    out.reasoning += piece.reasoning;
    out.content += piece.content;
  };
  for (std::size_t at = 0; at < text.size(); at += size) take(splitter.push(text.substr(at, size)));
  take(splitter.finish());
  return out;
}

// Whatever the pieces, the outcome is the same.
void expect_split(std::string_view text, const Split& expected, bool starts_inside = false) {
  for (std::size_t size = 1; size <= text.size(); ++size)
    EXPECT_EQ(split(text, size, starts_inside), expected) << "pieces of " << size << ": " << text;
}

TEST(ReasoningSplitter, TakesTheBlockAtTheStart) {
  expect_split("<think>\nsix times seven\n</think>\n\n42", {"six times seven", "42"});
  expect_split("\n<think>a</think>b", {"a", "b"});
  expect_split("<think>\n\n</think>\n\nplain", {"", "plain"});
}

TEST(ReasoningSplitter, PassesAnswersWithoutReasoningUnchanged) {
  expect_split("  plain answer \n", {"", "  plain answer \n"});
  expect_split("<thin air", {"", "<thin air"});
  expect_split("<thi", {"", "<thi"});
}

TEST(ReasoningSplitter, LeavesTagsInTheAnswerAlone) {
  expect_split("The tag <think> starts, </think> ends.",
               {"", "The tag <think> starts, </think> ends."});
  expect_split("<think>a</think>use <think>b</think>", {"a", "use <think>b</think>"});
}

TEST(ReasoningSplitter, ContinuesTheBlockThatThePromptOpened) {
  expect_split("a < b\n</think>\n\nyes", {"a < b", "yes"}, true);
  expect_split("\n<think>again</think>yes", {"again", "yes"}, true);
}

TEST(ReasoningSplitter, CallsATruncatedBlockReasoningToItsEnd) {
  expect_split("I was thinking and", {"I was thinking and", ""}, true);
  expect_split("cut in the tag </thi", {"cut in the tag </thi", ""}, true);
  expect_split("<think>never closed", {"never closed", ""});
}

TEST(ReasoningSplitter, HoldsBackOnlyWhatMayBeATag) {
  ReasoningSplitter splitter({"<think>", "</think>"}, true);
  EXPECT_EQ(splitter.push("a </th").reasoning, "a");
  EXPECT_EQ(splitter.push("e").reasoning, " </the");
  EXPECT_EQ(splitter.push("x y").reasoning, "x y");
}

TEST(ReasoningSplitter, WithoutTagsAllIsContent) {
  EXPECT_EQ(split("<think>x</think>", 3, false, {}), (Split{"", "<think>x</think>"}));
}

}  // namespace
}  // namespace strata
