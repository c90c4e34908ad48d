#include <algorithm>

#include "base/utf8.h"
#include "grammar/grammar.h"

namespace strata {

GrammarBuilder::GrammarBuilder() { expressions_.push_back({}); }

GrammarBuilder::Id GrammarBuilder::add(Expression expression, const std::vector<Id>& parts) {
  if (!status_.ok()) return empty();
  if (expressions_.size() + parts_.size() + bytes_.size() > GrammarLimits::kExpressions) {
    status_ = resource_exhausted("the grammar has more than {} parts", GrammarLimits::kExpressions);
    return empty();
  }
  if (expression.kind != Kind::kLiteral && !parts.empty()) {
    expression.first = static_cast<std::uint32_t>(parts_.size());
    expression.count = static_cast<std::uint32_t>(parts.size());
  }
  for (const Id part : parts)
    expression.nesting = std::max(expression.nesting, expressions_[part].nesting + 1);
  if (expression.nesting > GrammarLimits::kNesting) {
    status_ = resource_exhausted("the grammar nests deeper than {}", GrammarLimits::kNesting);
    return empty();
  }
  parts_.insert(parts_.end(), parts.begin(), parts.end());
  expressions_.push_back(expression);
  return static_cast<Id>(expressions_.size() - 1);
}

GrammarBuilder::Id GrammarBuilder::literal(std::string_view bytes) {
  if (bytes.empty()) return empty();
  const Id id = add({Kind::kLiteral, static_cast<std::uint32_t>(bytes_.size()),
                     static_cast<std::uint32_t>(bytes.size())},
                    {});
  bytes_ += bytes;
  return id;
}

GrammarBuilder::Id GrammarBuilder::characters(const CharClass& characters) {
  classes_.push_back(characters);
  return add({Kind::kCharacters, static_cast<std::uint32_t>(classes_.size() - 1)}, {});
}

GrammarBuilder::Id GrammarBuilder::sequence(std::vector<Id> parts) {
  std::erase(parts, empty());
  if (parts.empty()) return empty();
  return parts.size() == 1 ? parts.front() : add({Kind::kSequence}, parts);
}

GrammarBuilder::Id GrammarBuilder::choice(std::vector<Id> alternatives) {
  return alternatives.size() == 1 ? alternatives.front() : add({Kind::kChoice}, alternatives);
}

GrammarBuilder::Id GrammarBuilder::repeat(Id body, std::uint32_t min, std::uint32_t max) {
  if (max == 0) return empty();
  return min == 1 && max == 1 ? body : add({Kind::kRepeat, 0, 0, min, max}, {body});
}

// One rule per number of characters of `end` that have just been read (Knuth, Morris, Pratt, "Fast
// Pattern Matching in Strings", 1977).
GrammarBuilder::Id GrammarBuilder::text_through(std::string_view end) {
  std::u32string wanted;
  for (std::size_t at = 0; at < end.size();) {
    const Utf8Prefix prefix = utf8_prefix(end.substr(at));
    wanted += prefix.character;
    at += prefix.bytes;
  }
  std::vector<RuleId> rules;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    rules.push_back(add_rule(std::string("text before ") + std::string(end)));
  for (std::size_t have = 0; have < wanted.size(); ++have) {
    std::vector<Id> alternatives;
    CharClass others = CharClass::all();
    for (const char32_t character : wanted.substr(0, have + 1)) {
      const CharClass one({{character, character}});
      if ((others & one).empty()) continue;
      others = others - one;
      const std::u32string read = wanted.substr(0, have) + character;
      std::size_t next = read.size();
      while (next > 0 && !read.ends_with(wanted.substr(0, next))) --next;
      std::vector<Id> parts = {characters(one)};
      if (next < wanted.size()) parts.push_back(rule(rules[next]));
      alternatives.push_back(sequence(parts));
    }
    alternatives.push_back(sequence({characters(others), rule(rules[0])}));
    define(rules[have], choice(alternatives));
  }
  return rules.empty() ? empty() : rule(rules[0]);
}

GrammarBuilder::RuleId GrammarBuilder::add_rule(std::string name) {
  if (rules_.size() >= GrammarLimits::kRules && status_.ok())
    status_ = resource_exhausted("the grammar has more than {} rules", GrammarLimits::kRules);
  if (!status_.ok() && !rules_.empty()) return 0;
  rules_.push_back({std::move(name), empty()});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarBuilder::define(RuleId rule, Id expression) { rules_[rule].expression = expression; }

GrammarBuilder::Id GrammarBuilder::rule(RuleId rule) { return add({Kind::kRule, rule}, {}); }

}  // namespace strata
