#include <fmt/format.h>

#include <string>

#include "grammar/test_support.h"

namespace strata {
namespace {

using namespace testing;

std::string refusal(std::string_view text) {
  const auto grammar = parse_gbnf(text);
  EXPECT_FALSE(grammar.ok()) << text;
  return grammar.ok() ? "" : grammar.status().message();
}

void expect_error(std::string_view text, std::string_view part) {
  const std::string message = refusal(text);
  EXPECT_NE(message.find(part), message.npos) << message;
}

TEST(Gbnf, ReadsTheGrammarsOfTheField) {
  const Grammar arithmetic = gbnf(R"gbnf(
# Sums of products.
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] ws term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t\n]*
)gbnf");
  EXPECT_TRUE(accepts(arithmetic, "a + (b_1 * 2) = 3\n"));
  EXPECT_TRUE(begins(arithmetic, "a + (b"));
  EXPECT_FALSE(begins(arithmetic, "a + )"));
  EXPECT_FALSE(accepts(arithmetic, "a = "));
}

TEST(Gbnf, EscapesNameCharacters) {
  const Grammar grammar =
      gbnf(R"gbnf(root ::= "\n\r\t\\\"\[\]\x41\u00e9\U0001F600" [\]\x2d\\^-] "é")gbnf");
  for (const char* last : {"]", "-", "\\", "^"})
    EXPECT_TRUE(accepts(grammar, std::string("\n\r\t\\\"[]Aé😀") + last + "é")) << last;
  EXPECT_FALSE(begins(grammar, "\n\r\t\\\"[]Aé😀x"));
}

TEST(Gbnf, ClassesHoldCharactersAndNotBytes) {
  const Grammar cyrillic = gbnf("root ::= [а-яё]{2}");
  EXPECT_TRUE(accepts(cyrillic, "ёж"));
  EXPECT_FALSE(begins(cyrillic, "z"));
  EXPECT_FALSE(begins(cyrillic, "\xd0\xd0"));
  const Grammar others = gbnf("root ::= [^\"\\\\а-я]");
  for (const char* text : {"a", "\n", "é", "😀", "漢"}) EXPECT_TRUE(accepts(others, text)) << text;
  for (const char* text : {"\"", "\\", "б"}) EXPECT_FALSE(accepts(others, text)) << text;
  const Grammar any = gbnf("root ::= .");
  for (const char* text : {"a", "\n", "\u00a0", "\ud7ff", "\ue000", "\U0010ffff"})
    EXPECT_TRUE(accepts(any, text));
  // Overlong, surrogate, beyond Unicode, a byte that starts nothing.
  for (const char* text : {"\xc0\x80", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80"})
    EXPECT_FALSE(begins(any, text));
}

TEST(Gbnf, LinesEndRulesUnlessTheyCannot) {
  EXPECT_TRUE(accepts(gbnf("root ::=\n  \"a\" |\n  \"b\"\n"), "b"));
  EXPECT_TRUE(accepts(gbnf("root ::= \"a\"\n  # between\n  | \"b\"\r\nother ::= \"c\""), "b"));
  EXPECT_TRUE(accepts(gbnf("root ::= (\n\"a\"\n\"b\"\n)+"), "abab"));
  EXPECT_TRUE(accepts(gbnf("root ::= a-b_2 # end\na-b_2 ::= \"x\""), "x"));
  EXPECT_TRUE(accepts(gbnf("root ::= | \"a\""), ""));
}

TEST(Gbnf, RepetitionsCountFromMinToMax) {
  struct Case {
    const char* count;
    int min, max;
  };
  for (const auto& [count, min, max] : {Case{"{3}", 3, 3},
                                        {"{2,}", 2, 999},
                                        {"{2,4}", 2, 4},
                                        {"{0,1}", 0, 1},
                                        {"*", 0, 999},
                                        {"+", 1, 999},
                                        {"?", 0, 1},
                                        {"{ 70 , 80 }", 70, 80},
                                        {"{90,}", 90, 999},
                                        {"{0}", 0, 0},
                                        {"{0,0}", 0, 0}}) {
    const Grammar grammar = gbnf(std::string("root ::= \"ab\"") + count + " \"c\"");
    std::string text;
    for (int n = 0; n <= 100; ++n, text += "ab")
      EXPECT_EQ(accepts(grammar, text + "c"), min <= n && n <= max) << count << " " << n;
  }
}

TEST(Gbnf, ErrorsNameLineAndColumn) {
  expect_error("root ::= \"a\"\nb ::= [x", "line 2, column 7");
  expect_error("root ::= \"a", "line 1, column 10");
  expect_error("root ::= \"é\" ?? )", "line 1, column 17");
  expect_error("root ::= a\n\n  a ::= b | (\"x\"", "line 3, column 17");
  expect_error("root ::= missing",
               "line 1, column 10 of the grammar: there is no rule \"missing\"");
  expect_error("root ::= \"a\"\nroot ::= \"b\"", "line 2, column 1");
  expect_error("root ::= [z-a]", "line 1, column 11");
  expect_error("root ::= \"\\q\"", "line 1, column 11");
  expect_error("root ::= \"\\ud800\"", "line 1, column 11");
  expect_error("root ::= \"a\"{x}", "line 1, column 14");
  expect_error("root = \"a\"", "line 1, column 6");
  expect_error("root ::= \"\xff\"", "line 1, column 11");
  expect_error("other ::= \"a\"", "\"root\"");
  expect_error("", "\"root\"");
}

TEST(Gbnf, AMaximumBelowTheMinimumIsRefused) {
  expect_error("root ::= \"a\"{5,0}", "line 1, column 13");
  expect_error("root ::= \"a\"{99999999999999999999}", "line 1, column 14");
}

TEST(Gbnf, LeftRecursionIsRefused) {
  expect_error(
      "root ::= expression\n"
      "expression ::= (integer | binary-operator)\n"
      "integer ::= [0-9]+\n"
      "binary-operator ::= expression (\"+\"|\"-\") expression",
      "left recursion");
  expect_error("root ::= root", "line 1, column 1");
  expect_error("root ::= \"\"? root \"a\" | \"b\"", "left recursion");
  expect_error("root ::= (a | \"x\")*\na ::= \"y\"* root", "left recursion");
}

TEST(Gbnf, RulesThatNeverEndAreRefusedWhereNothingElseIsLeft) {
  expect_error("root ::= \"a\" root", "never comes to an end");
  expect_error("root ::= []", "never comes to an end");
  expect_error("root ::= \"a\" b\nb ::= \"x\" c | \"y\" b\nc ::= []", "\"c\" matches no text");
  const Grammar grammar = gbnf("root ::= \"b\" | \"a\" forever\nforever ::= \"c\" forever");
  EXPECT_TRUE(accepts(grammar, "b"));
  EXPECT_FALSE(begins(grammar, "a"));
}

TEST(Gbnf, RepetitionsOfWhatMayBeEmptyEnd) {
  for (const char* text : {"root ::= (\"a\"*)*", "root ::= (\"a\"*)+", "root ::= ((\"a\"?)*)*",
                           "root ::= (\"a\"*){0,100000}", "root ::= (\"a\"? | \"\"){90,}",
                           "root ::= (a a)*\na ::= b?\nb ::= \"a\" | \"\" b?"}) {
    const auto grammar = parse_gbnf(text);
    if (!grammar.ok()) continue;
    EXPECT_TRUE(accepts(*grammar, "")) << text;
    EXPECT_TRUE(accepts(*grammar, "aaa")) << text;
    EXPECT_FALSE(begins(*grammar, "ab")) << text;
  }
  EXPECT_TRUE(accepts(gbnf("root ::= (\"a\"*)*"), "aa"));
}

TEST(Gbnf, LongChainsOfRulesNeedNoStackOfTheMachine) {
  std::string chain, calls;
  for (int i = 0; i < 5000; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    const std::string head = (i == 0 ? "root" : "r" + std::to_string(i)) + " ::= " + next;
    chain += head + "\n";
    calls += head + " \"x\"\n";
  }
  EXPECT_TRUE(accepts(gbnf(chain + "r5000 ::= \"a\""), "a"));
  EXPECT_NE(refusal(calls + "r5000 ::= \"a\"").find("nested too deep"), std::string::npos);
  EXPECT_NE(refusal(chain + "r5000 ::= root").find("left recursion"), std::string::npos);
}

TEST(Gbnf, NestingHasALimit) {
  for (const int depth : {200, 100'000}) {
    const auto brackets = static_cast<std::size_t>(depth);
    expect_error("root ::= " + std::string(brackets, '('), "nest deeper");
    expect_error("root ::= \"a\"" + std::string(brackets * 4, '*'), "nest");
  }
  EXPECT_TRUE(
      accepts(gbnf("root ::= " + std::string(90, '(') + "\"a\"" + std::string(90, ')')), "a"));
}

TEST(Gbnf, LargeRepetitionsCostNoStates) {
  const Grammar grammar = gbnf("root ::= ([a-z]{0,100000} \"-\"){1000,1000000}");
  EXPECT_LT(grammar->states.size(), 50u);
  EXPECT_TRUE(begins(grammar, std::string(100'000, 'a') + "-"));
  EXPECT_FALSE(begins(grammar, std::string(100'001, 'a')));
}

// What cannot be followed ends the answer and nothing else.
TEST(Gbnf, AmbiguityHasALimit) {
  GrammarMatcher matcher(
      gbnf("root ::= s\ns ::= \"a\" s \"b\" | \"a\" s \"c\" | \"a\" s \"d\" | \"b\""));
  EXPECT_TRUE(matcher.read("aaaa"));
  EXPECT_FALSE(matcher.read(std::string(60, 'a')));
  EXPECT_FALSE(matcher.read("a"));
}

// Every rule doubles the ways; what is looked at before that is refused stays bounded.
TEST(Gbnf, WaysThatMultiplyAreNotFollowedToTheirEnd) {
  std::string rules;
  for (int i = 0; i < 60; ++i) rules += fmt::format("a{0} ::= a{1} | a{1} [a-z]\n", i, i + 1);
  rules += "a60 ::= [a-z]*\n";
  expect_error("root ::= a0\n" + rules, "can begin in too many ways");
  const Grammar grammar = gbnf("root ::= \"-\" a0\n" + rules);
  Simulation simulation(*grammar);
  EXPECT_EQ(simulation.step(simulation.start(), '-'), Simulation::kDead);
  EXPECT_TRUE(simulation.overflowed());
  EXPECT_LT(simulation.visits(), 200'000u);
}

}  // namespace
}  // namespace strata
