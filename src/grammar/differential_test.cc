// Random small grammars against a naive matcher, and masks against tokens tried one by one.
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "grammar/test_support.h"

namespace strata {
namespace {

using namespace testing;

struct Node {
  char kind = 'l';  // l(iteral), c(lass), s(equence), a(lternatives), r(epetition), n(ame)
  std::string text;
  std::vector<Node> parts;
  int min = 0, max = 0;  // max -1: none
  std::size_t rule = 0;
};

class RandomGrammar {
 public:
  // `repeating`: mostly of repetitions within repetitions.
  explicit RandomGrammar(unsigned seed, bool repeating = false)
      : random_(seed), repeating_(repeating) {
    const std::size_t count = repeating ? 1 : 1 + random_() % 3;
    for (std::size_t i = 0; i < count; ++i) rules.push_back(make(3, count));
  }

  std::string gbnf_text() const {
    std::string out;
    for (std::size_t i = 0; i < rules.size(); ++i) out += name(i) + " ::= " + text(rules[i]) + "\n";
    return out;
  }

  std::vector<Node> rules;

 private:
  Node make(int depth, std::size_t rule_count) {
    const bool repeats = repeating_ && depth > 0 && random_() % 4 != 0;
    const auto choice = repeats ? 8 : random_() % (depth == 0 ? (repeating_ ? 2 : 3) : 9);
    if (choice == 0) return {'l', std::string(random_() % 3, "abc"[random_() % 3]), {}};
    if (choice == 1) return {'c', random_() % 2 == 0 ? "ab" : "bc", {}};
    if (choice == 2) return {'n', "", {}, 0, 0, random_() % rule_count};
    Node node;
    node.kind = choice < 5 ? 's' : choice < 7 ? 'a' : 'r';
    const std::size_t parts = node.kind == 'r' ? 1 : 1 + random_() % 3;
    for (std::size_t i = 0; i < parts; ++i) node.parts.push_back(make(depth - 1, rule_count));
    if (node.kind == 'r') {
      node.min = static_cast<int>(random_() % 3) * static_cast<int>(random_() % 60 == 0 ? 40 : 1);
      node.max = random_() % 3 == 0 ? -1 : node.min + static_cast<int>(random_() % 4);
      if (random_() % 4 == 0) node.max = node.min + 70;  // more than is copied
    }
    return node;
  }

  static std::string name(std::size_t rule) {
    return rule == 0 ? "root" : "rule-" + std::to_string(rule);
  }

  static std::string text(const Node& node) {
    if (node.kind == 'l') return '"' + node.text + '"';
    if (node.kind == 'c') return '[' + node.text + ']';
    if (node.kind == 'n') return name(node.rule);
    if (node.kind == 'r')
      return '(' + text(node.parts[0]) + "){" + std::to_string(node.min) + ',' +
             (node.max < 0 ? "" : std::to_string(node.max)) + '}';
    std::string out = "(";
    for (std::size_t i = 0; i < node.parts.size(); ++i)
      out += (i == 0 ? "" : node.kind == 'a' ? " | " : " ") + text(node.parts[i]);
    return out + ')';
  }

  std::mt19937 random_;
  bool repeating_;
};

// Where a match of a node that starts at a position may end.
class NaiveMatcher {
 public:
  NaiveMatcher(const std::vector<Node>& rules, std::string_view text)
      : rules_(rules), text_(text) {}
  bool matches() { return ends(rules_[0], 0).contains(text_.size()); }

 private:
  using Ends = std::set<std::size_t>;

  Ends ends(const Node& node, std::size_t at) {
    if (node.kind == 'l')
      return text_.substr(at).starts_with(node.text) ? Ends{at + node.text.size()} : Ends{};
    if (node.kind == 'c')
      return at < text_.size() && node.text.find(text_[at]) != node.text.npos ? Ends{at + 1}
                                                                              : Ends{};
    if (node.kind == 'n') {
      const auto key = std::pair(node.rule, at);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
      known_[key] = {};
      return known_[key] = ends(rules_[node.rule], at);
    }
    if (node.kind == 'r') return repeated(node, at);
    Ends out = {at};
    if (node.kind == 'a') out.clear();
    for (const Node& part : node.parts) {
      if (node.kind == 'a') {
        out.merge(ends(part, at));
        continue;
      }
      out = behind(part, out);
    }
    return out;
  }

  Ends behind(const Node& node, const Ends& starts) {
    Ends out;
    for (const std::size_t start : starts) out.merge(ends(node, start));
    return out;
  }

  Ends repeated(const Node& node, std::size_t at) {
    Ends current = {at}, out;
    if (node.min == 0) out.insert(at);
    // Rounds without text change nothing, so as many as there are characters suffice beyond min.
    const int most = node.min + static_cast<int>(text_.size()) + 1;
    for (int i = 1; i <= (node.max < 0 ? most : std::min(node.max, most)); ++i) {
      current = behind(node.parts[0], current);
      if (i >= node.min) out.insert(current.begin(), current.end());
    }
    return out;
  }

  const std::vector<Node>& rules_;
  std::string_view text_;
  std::map<std::pair<std::size_t, std::size_t>, Ends> known_;
};

std::vector<std::string> texts_up_to(std::size_t length) {
  std::vector<std::string> texts(1);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() == length) continue;
    for (char c = 'a'; c <= 'c'; ++c) {
      std::string longer = texts[i];
      longer.push_back(c);
      texts.push_back(std::move(longer));
    }
  }
  return texts;
}

TEST(GrammarMatcher, AcceptsWhatANaiveMatcherAccepts) {
  const std::vector<std::string> texts = texts_up_to(STRATA_SLOW ? 4 : 5);
  int grammars = 0, accepted = 0;
  for (unsigned seed = 0; seed < (STRATA_SLOW ? 150 : 600); ++seed) {
    const RandomGrammar random(seed);
    const auto grammar = parse_gbnf(random.gbnf_text());
    if (!grammar.ok()) {
      const std::string why = grammar.status().message();
      ASSERT_TRUE(why.find("begin with itself") != why.npos || why.find("no text") != why.npos)
          << why << "\n"
          << random.gbnf_text();
      continue;
    }
    ++grammars;
    for (const std::string& text : texts) {
      const bool expected = NaiveMatcher(random.rules, text).matches();
      ASSERT_EQ(accepts(*grammar, text), expected) << text << "\n" << random.gbnf_text();
      accepted += expected;
    }
  }
  EXPECT_GT(grammars, STRATA_SLOW ? 60 : 240);
  EXPECT_GT(accepted, STRATA_SLOW ? 300 : 1000);
}

// Long enough that rounds of nested repetitions can be divided in many ways.
TEST(GrammarMatcher, CountsRoundsAsANaiveMatcherDoes) {
  std::mt19937 random(3);
  int accepted = 0;
  for (unsigned seed = 5000; seed < (STRATA_SLOW ? 5100u : 5400u); ++seed) {
    const RandomGrammar made(seed, true);
    const auto grammar = parse_gbnf(made.gbnf_text());
    if (!grammar.ok()) continue;
    for (int i = 0; i < 24; ++i) {
      std::string text(static_cast<std::size_t>(i), 'a');
      for (std::size_t n = random() % 3; n > 0 && !text.empty(); --n)
        text[random() % text.size()] = "bc"[random() % 2];
      const bool expected = NaiveMatcher(made.rules, text).matches();
      ASSERT_EQ(accepts(*grammar, text), expected) << text << "\n" << made.gbnf_text();
      accepted += expected;
    }
  }
  EXPECT_GT(accepted, STRATA_SLOW ? 100 : 400);
}

std::shared_ptr<const TokenTable> random_tokens(std::mt19937& random) {
  std::vector<std::string> tokens = {"", "a", "b", "c", "ab", "a"};
  for (int i = 0; i < 90; ++i) {
    std::string token;
    const std::size_t length = 1 + random() % (i % 10 == 0 ? 12 : 4);
    while (token.size() < length) token += "aaabbcd"[random() % 7];
    tokens.push_back(token);
  }
  tokens.push_back("<end>");
  const auto end = static_cast<TokenId>(tokens.size() - 1);
  return std::make_shared<const TokenTable>(std::move(tokens), std::vector{end},
                                            std::vector<TokenId>{});
}

TEST(TokenMasks, AllowExactlyTheTokensThatTheMatcherTakes) {
  std::mt19937 random(7);
  int compared = 0;
  for (unsigned seed = 1000; seed < (STRATA_SLOW ? 1100u : 1500u); ++seed) {
    const RandomGrammar made(seed);
    const auto grammar = parse_gbnf(made.gbnf_text());
    if (!grammar.ok()) continue;
    const auto table = random_tokens(random);
    TokenMasks masks(*grammar, table);
    for (int walk = 0; walk < 3; ++walk) {
      GrammarMatcher matcher(*grammar);
      // With more threads trying every token takes long.
      constexpr std::size_t kMost = STRATA_SLOW ? 100 : 300;
      for (int step = 0; step < 12 && matcher.configuration().threads.size() < kMost; ++step) {
        const auto mask = masks.mask(matcher.configuration());
        if (mask == nullptr) break;  // too ambiguous
        const auto tried = tried_mask(matcher, *table);
        for (TokenId token = 0; table->contains(token); ++token) {
          if (has_bit(*mask, token) == has_bit(tried, token)) continue;
          GrammarMatcher copy = matcher;
          ASSERT_TRUE(!copy.read(table->bytes(token)) && copy.too_ambiguous())
              << table->bytes(token) << " with " << matcher.configuration().threads.size()
              << " threads of\n"
              << made.gbnf_text();
        }
        ++compared;
        std::vector<TokenId> allowed = tokens_of(*mask);
        std::erase_if(allowed, [&](TokenId token) { return table->is_end(token); });
        if (allowed.empty()) break;
        ASSERT_TRUE(matcher.read(table->bytes(pick(allowed, random))));
      }
    }
  }
  EXPECT_GT(compared, STRATA_SLOW ? 100 : 500);
}

}  // namespace
}  // namespace strata
