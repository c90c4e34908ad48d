#include "grammar/delayed_constraint.h"
#include "grammar/json_schema.h"
#include "grammar/test_support.h"

namespace strata {
namespace {

using namespace testing;

struct Vocabulary {
  explicit Vocabulary(std::vector<std::string> texts) : tokens(std::move(texts)) {
    tokens.emplace_back("<end>");
    end = static_cast<TokenId>(tokens.size() - 1);
    table = std::make_shared<const TokenTable>(tokens, std::vector{end}, std::vector<TokenId>{});
  }
  TokenId find(std::string_view text) const {
    const auto found = std::ranges::find(tokens, text);
    EXPECT_NE(found, tokens.end()) << text;
    return static_cast<TokenId>(found - tokens.begin());
  }
  std::shared_ptr<TokenMasks> masks(std::string_view grammar) const {
    return std::make_shared<TokenMasks>(gbnf(grammar), table);
  }

  std::vector<std::string> tokens;
  TokenId end = 0;
  std::shared_ptr<const TokenTable> table;
};

// The allowed tokens' texts; "*": all.
std::vector<std::string> allowed(Constraint& constraint, const Vocabulary& vocabulary) {
  const auto mask = constraint.allowed();
  if (mask.empty()) return {"*"};
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < vocabulary.tokens.size(); ++i)
    if (has_bit(mask, static_cast<TokenId>(i))) texts.push_back(vocabulary.tokens[i]);
  return texts;
}

using Texts = std::vector<std::string>;

TEST(GrammarConstraint, AppliesFromTheFirstTokenToTheEnd) {
  const Vocabulary v({"a", "b", "ab", "abc", ""});
  GrammarConstraint constraint(v.masks("root ::= \"ab\"+"));
  EXPECT_EQ(allowed(constraint, v), (Texts{"a", "ab"}));
  constraint.advance(v.find("a"));
  EXPECT_EQ(allowed(constraint, v), (Texts{"b"}));
  constraint.advance(v.find("b"));
  EXPECT_EQ(allowed(constraint, v), (Texts{"a", "ab", "<end>"}));
  constraint.advance(v.end);
}

TEST(GrammarConstraint, CopiesGoTheirOwnWay) {
  const Vocabulary v({"a", "b"});
  GrammarConstraint constraint(v.masks("root ::= \"aa\" | \"bb\""));
  constraint.advance(v.find("a"));
  const auto copy = constraint.clone();
  EXPECT_EQ(allowed(*copy, v), (Texts{"a"}));
  copy->advance(v.find("a"));
  EXPECT_EQ(allowed(*copy, v), (Texts{"<end>"}));
  EXPECT_EQ(allowed(constraint, v), (Texts{"a"}));
}

TEST(GrammarConstraint, SpecialTokensAreNoText) {
  const std::vector<std::string> tokens = {"a", "<b>", "<e>"};
  const auto table =
      std::make_shared<const TokenTable>(tokens, std::vector<TokenId>{2}, std::vector<TokenId>{1});
  GrammarConstraint constraint(std::make_shared<TokenMasks>(gbnf("root ::= .{1,3}"), table));
  EXPECT_EQ(tokens_of(constraint.allowed()), (std::vector<TokenId>{0}));
}

TEST(GrammarConstraint, NothingIsAllowedWhereTheVocabularyDoesNotFit) {
  const Vocabulary v({"a", "b"});
  GrammarConstraint constraint(v.masks("root ::= \"ac\""));
  constraint.advance(v.find("a"));
  EXPECT_EQ(allowed(constraint, v), Texts{});
  EXPECT_FALSE(constraint.allowed().empty());
}

std::shared_ptr<DelayedRules> rules(const Vocabulary& v, std::string_view trigger,
                                    std::string_view grammar, DelayOptions options = {}) {
  return std::make_shared<DelayedRules>(
      std::vector<DelayedGrammar>{{std::string(trigger), v.masks(grammar)}}, options);
}

TEST(DelayedConstraint, AppliesFromTheByteAfterTheTrigger) {
  const Vocabulary v(
      {"</think>", "think", ">", "</", ">x", ">{", "x", "{", "}", "</think>{", "a</think>x"});
  for (const Texts& thoughts : {Texts{"x", "</think>"}, Texts{"</", "think", ">"},
                                Texts{"</", "</", "x", "</", "think", ">"}}) {
    DelayedConstraint constraint(rules(v, "</think>", "root ::= \"{\" \"}\""));
    for (const std::string& token : thoughts) {
      const auto mask = constraint.allowed();
      EXPECT_TRUE(mask.empty() || has_bit(mask, v.find(token))) << token;
      constraint.advance(v.find(token));
    }
    EXPECT_EQ(allowed(constraint, v), Texts{"{"});
    constraint.advance(v.find("{"));
    EXPECT_EQ(allowed(constraint, v), Texts{"}"});
    constraint.advance(v.find("}"));
    EXPECT_EQ(allowed(constraint, v), Texts{"<end>"});
  }
}

TEST(DelayedConstraint, TheTriggerMayEndInsideAToken) {
  const Vocabulary v({"</think", ">", ">{", ">x", "x</think>{", "x</think>x", "}"});
  DelayedConstraint constraint(rules(v, "</think>", "root ::= \"{\" \"}\""));
  EXPECT_EQ(allowed(constraint, v),
            (Texts{"</think", ">", ">{", ">x", "x</think>{", "}", "<end>"}));
  constraint.advance(v.find("</think"));
  EXPECT_EQ(allowed(constraint, v), (Texts{"</think", ">", ">{", "x</think>{", "}", "<end>"}));
  constraint.advance(v.find(">{"));
  EXPECT_EQ(allowed(constraint, v), Texts{"}"});
}

TEST(DelayedConstraint, IsFreeAgainBehindTheGrammarWhereItRepeats) {
  const Vocabulary v({"<t>", "1", "</t>", "x"});
  DelayedConstraint constraint(rules(v, "<t>", "root ::= [0-9]+ \"</t>\"", {.repeats = true}));
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(allowed(constraint, v), Texts{"*"});
    constraint.advance(v.find("x"));
    constraint.advance(v.find("<t>"));
    EXPECT_EQ(allowed(constraint, v), Texts{"1"});
    constraint.advance(v.find("1"));
    EXPECT_EQ(allowed(constraint, v), (Texts{"1", "</t>"}));
    const auto copy = constraint.clone();
    constraint.advance(v.find("</t>"));
    EXPECT_EQ(allowed(*copy, v), (Texts{"1", "</t>"}));
  }
}

TEST(DelayedConstraint, EachTriggerHasItsGrammar) {
  const Vocabulary v({"<a>", "<b>", "1", "2"});
  const auto both = std::make_shared<DelayedRules>(
      std::vector<DelayedGrammar>{{"<a>", v.masks("root ::= \"1\"")},
                                  {"<b>", v.masks("root ::= \"2\"")}},
      DelayOptions{});
  DelayedConstraint first(both), second(both);
  first.advance(v.find("<a>"));
  second.advance(v.find("<b>"));
  EXPECT_EQ(allowed(first, v), Texts{"1"});
  EXPECT_EQ(allowed(second, v), Texts{"2"});
}

TEST(DelayedConstraint, TheAnswerMayBeKeptFromEndingBefore) {
  const Vocabulary v({"</think>", "x"});
  DelayedConstraint constraint(rules(v, "</think>", "root ::= \"x\"", {.may_end_before = false}));
  EXPECT_EQ(allowed(constraint, v), (Texts{"</think>", "x"}));
  constraint.advance(v.find("</think>"));
  constraint.advance(v.find("x"));
  EXPECT_EQ(allowed(constraint, v), Texts{"<end>"});
}

TEST(TextSearch, FindsTextsThatOverlapThemselves) {
  for (const std::string text : {"aab", "abab", "aaaa", "<|<|x"}) {
    const TextSearch search(text);
    for (const std::string before : {"", "a", "aa", "ab", "aba", "<|", "<"}) {
      const std::string all = before + text;
      std::uint32_t matched = 0;
      std::size_t end = 0;
      while (end < all.size() && !search.found(matched)) matched = search.next(matched, all[end++]);
      EXPECT_EQ(end, all.find(text) + text.size()) << before << text;
    }
  }
}

}  // namespace
}  // namespace strata
