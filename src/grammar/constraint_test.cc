#include "grammar/grammar_constraint.h"
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
  std::shared_ptr<TokenMasks> masks(std::string_view grammar,
                                    std::shared_ptr<MaskRoom> room = nullptr) const {
    return std::make_shared<TokenMasks>(gbnf(grammar), table, std::move(room));
  }

  std::vector<std::string> tokens;
  TokenId end = 0;
  std::shared_ptr<const TokenTable> table;
};

// The allowed tokens' texts; "*": all.
std::vector<std::string> allowed(Constraint& constraint, const Vocabulary& vocabulary) {
  const auto mask = *constraint.allowed();
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
  EXPECT_EQ(tokens_of(*constraint.allowed()), (std::vector<TokenId>{0}));
}

// Takes `text` over and over; how many bytes until the constraint can follow no further.
std::size_t followed(GrammarConstraint& constraint, const Vocabulary& v, std::string_view text,
                     std::size_t most) {
  const TokenId token = v.find(text);
  for (std::size_t read = 0; read < most; read += text.size()) {
    const auto mask = constraint.allowed();
    if (!mask.ok()) return read;
    EXPECT_TRUE(has_bit(*mask, token)) << read;
    constraint.advance(token);
  }
  return most;
}

TEST(GrammarConstraint, FollowsWhatCanBeDividedInManyWays) {
  const Vocabulary v({"a", "aaaaaaa", "b", " ", ","});
  for (const char* const text :
       {R"(root ::= ([a-z]{1,20} " "?){200,400})", R"(root ::= ([a-z]{1,40} ","?){300})",
        R"(root ::= ("a"{1,1000}){1,1000})",
        R"(root ::= (("a" | "aa" | "aaa"){2,30}){2,90} "b")"}) {
    GrammarConstraint constraint(v.masks(text));
    EXPECT_EQ(followed(constraint, v, "aaaaaaa", 350), 350u) << text;
    EXPECT_LT(constraint.matcher().configuration().threads.size(), 1500u) << text;
  }
}

TEST(GrammarConstraint, SaysThatAGrammarIsTooAmbiguous) {
  const Vocabulary v({"a", std::string(32, 'a'), "b"});
  GrammarConstraint constraint(v.masks(R"(root ::= (("a"{1,100}){1,100}){1,100} "b")"));
  EXPECT_LT(followed(constraint, v, v.tokens[1], 2000), 2000u);
  const auto allowed = constraint.allowed();
  ASSERT_FALSE(allowed.ok());
  EXPECT_NE(allowed.status().message().find("too ambiguous"), std::string::npos);
}

TEST(TokenMasks, ShareARoomAndKeepNothingThatCanBeMadeAgainWhereItIsFull) {
  std::vector<std::string> texts;
  for (char a = 'a'; a <= 'z'; ++a)
    for (char b = 'a'; b <= 'z'; ++b) texts.push_back({a, b});
  const Vocabulary v(std::move(texts));
  constexpr const char* kText = R"(root ::= ([a-z]{1,40} [x-z]){200,400})";
  // Rounds ahead of the last make configurations that are all different.
  const auto follow = [&](const std::shared_ptr<TokenMasks>& masks) {
    std::vector<std::vector<TokenId>> seen;
    GrammarConstraint constraint(masks);
    for (int i = 0; i < 60; ++i) {
      const auto mask = constraint.allowed();
      EXPECT_TRUE(mask.ok());
      seen.push_back(tokens_of(*mask));
      constraint.advance(seen.back()[static_cast<std::size_t>(i) * 7 % seen.back().size()]);
    }
    return seen;
  };
  const auto alone = v.masks(kText), kept = v.masks(kText, std::make_shared<MaskRoom>(kGiB));
  const auto expected = follow(alone);
  EXPECT_EQ(follow(kept), expected);
  EXPECT_EQ(kept->bytes(), alone->bytes());

  const auto room = std::make_shared<MaskRoom>(alone->bytes() / 2);
  auto first = v.masks(kText, room);
  EXPECT_EQ(follow(first), expected);
  EXPECT_LE(room->used, room->most);
  auto second = v.masks(kText, room);
  EXPECT_EQ(follow(second), expected);
  EXPECT_LT(second->bytes(), alone->bytes() / 4);
  EXPECT_EQ(room->used, first->bytes() + second->bytes());
  first.reset();
  EXPECT_EQ(room->used, second->bytes());
  second.reset();
  EXPECT_EQ(room->used, 0u);
}

TEST(GrammarConstraint, NothingIsAllowedWhereTheVocabularyDoesNotFit) {
  const Vocabulary v({"a", "b"});
  GrammarConstraint constraint(v.masks("root ::= \"ac\""));
  constraint.advance(v.find("a"));
  EXPECT_EQ(allowed(constraint, v), Texts{});
  EXPECT_FALSE(constraint.allowed()->empty());
}

}  // namespace
}  // namespace strata
