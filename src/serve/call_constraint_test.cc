#include "serve/call_constraint.h"

#include <gtest/gtest.h>

#include "grammar/test_support.h"

namespace strata::serve {
namespace {

using strata::testing::gbnf;

constexpr TokenId kEnd = 256;
constexpr TokenId kTagAndMore = 257;  // "<t>x"

// Every byte, an end, and a token that reaches over the end of the trigger.
std::shared_ptr<const TokenTable> bytes_table() {
  std::vector<std::string> bytes;
  for (int byte = 0; byte < 256; ++byte) bytes.emplace_back(1, static_cast<char>(byte));
  bytes.emplace_back();
  bytes.emplace_back("<t>x");
  return std::make_shared<const TokenTable>(std::move(bytes), std::vector<TokenId>{kEnd},
                                            std::vector<TokenId>{});
}

CallConstraint constraint(CallStart start) {
  return CallConstraint(std::make_shared<TokenMasks>(gbnf(R"(root ::= call ("\n" call)*
                                           call ::= "<t>" [ab] "</t>")"),
                                                     bytes_table()),
                        std::move(start));
}

void say(CallConstraint& constraint, std::string_view text) {
  for (const char byte : text) constraint.advance(static_cast<unsigned char>(byte));
}
bool is_free(CallConstraint& constraint) { return constraint.allowed()->empty(); }
std::vector<TokenId> allowed(CallConstraint& constraint) {
  return strata::testing::tokens_of(*constraint.allowed());
}

TEST(CallConstraint, HoldsCallsFromTheirTriggerOn) {
  CallConstraint calls = constraint({.triggers = {{"<t>", "<t>"}}});
  EXPECT_TRUE(is_free(calls));
  say(calls, "Let me see <t");
  EXPECT_TRUE(is_free(calls));
  say(calls, ">");
  EXPECT_EQ(allowed(calls), (std::vector<TokenId>{'a', 'b'}));
  say(calls, "a");
  EXPECT_EQ(allowed(calls), (std::vector<TokenId>{'<'}));
  // Behind a call comes another or nothing.
  say(calls, "</t>");
  EXPECT_EQ(allowed(calls), (std::vector<TokenId>{'\n', kEnd}));
  say(calls, "\n<t>");
  EXPECT_EQ(allowed(calls), (std::vector<TokenId>{'a', 'b'}));
}

TEST(CallConstraint, ATriggerMayStandForMore) {
  CallConstraint calls = constraint({.triggers = {{"<t>", "<t>"}, {"[", "<t>"}}});
  say(calls, "so [");
  EXPECT_EQ(allowed(calls), (std::vector<TokenId>{'a', 'b'}));
}

TEST(CallConstraint, GoesItsOwnWayInEachChoice) {
  CallConstraint calls = constraint({.triggers = {{"<t>", "<t>"}}});
  say(calls, "<t");
  const auto other = calls.clone();
  say(calls, ">");
  EXPECT_FALSE(is_free(calls));
  EXPECT_TRUE(other->allowed()->empty());
  other->advance('>');
  EXPECT_FALSE(other->allowed()->empty());
}

TEST(CallConstraint, LeavesThinkingFree) {
  CallConstraint calls =
      constraint({.triggers = {{"<t>", "<t>"}}, .thinking = {"<think>", "</think>"}});
  say(calls, "\n<think>maybe <t>");
  EXPECT_TRUE(is_free(calls));
  say(calls, "</think>\n<t>");
  EXPECT_FALSE(is_free(calls));
  CallConstraint opened = constraint(
      {.triggers = {{"<t>", "<t>"}}, .thinking = {"<think>", "</think>"}, .in_thinking = true});
  say(opened, "<t>");
  EXPECT_TRUE(is_free(opened));
  say(opened, "</think><t>");
  EXPECT_FALSE(is_free(opened));
}

TEST(CallConstraint, TakesTagsInTheAnswerAsText) {
  CallConstraint calls =
      constraint({.triggers = {{"<t>", "<t>"}}, .thinking = {"<think>", "</think>"}});
  say(calls, "so <think> <t>");
  EXPECT_FALSE(is_free(calls));
}

TEST(CallConstraint, MayStartOnlyAtTheStart) {
  const CallStart start{.triggers = {{"<t>", "<t>"}}, .only_at_start = true, .prefix = "<py>"};
  for (const char* const text : {"<t>", " \n<t>", "<py><t>", "\n<py> <t>"}) {
    CallConstraint calls = constraint(start);
    say(calls, text);
    EXPECT_FALSE(is_free(calls)) << text;
  }
  for (const std::string& text :
       {std::string("x <t>"), std::string(1000, 'x') + "<t>", std::string("<py>x<t>")}) {
    CallConstraint calls = constraint(start);
    say(calls, text);
    EXPECT_TRUE(is_free(calls)) << text;
  }
}

TEST(CallConstraint, LetsGoOfWhatIsNoCall) {
  CallConstraint calls = constraint({.triggers = {{"<t>", "<t>"}}});
  calls.advance(kTagAndMore);
  EXPECT_TRUE(is_free(calls));
  say(calls, "<t>");
  EXPECT_FALSE(is_free(calls));
}

TEST(CallConstraint, IgnoresEndsAndUnknownTokens) {
  CallConstraint calls = constraint({.triggers = {{"<t>", "<t>"}}});
  calls.advance(kEnd);
  calls.advance(-1);
  calls.advance(99'999);
  EXPECT_TRUE(is_free(calls));
}

}  // namespace
}  // namespace strata::serve
