#include <algorithm>
#include <map>
#include <optional>

#include "grammar/grammar.h"

namespace strata {
namespace {

constexpr std::size_t kNameBytes = 16;  // of a rule's name, that count as one part

}  // namespace

GrammarBuilder::GrammarBuilder() { expressions_.push_back({}); }

bool GrammarBuilder::take(std::size_t parts) {
  if (!status_.ok()) return false;
  if (parts > GrammarLimits::kExpressions - size_) {
    status_ = resource_exhausted("the grammar has more than {} parts", GrammarLimits::kExpressions);
    return false;
  }
  size_ += parts;
  return true;
}

GrammarBuilder::Id GrammarBuilder::add(Expression expression, const std::vector<Id>& parts) {
  if (!take(1 + parts.size())) return empty();
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
  if (bytes.empty() || !take(bytes.size())) return empty();
  const Id id = add({Kind::kLiteral, static_cast<std::uint32_t>(bytes_.size()),
                     static_cast<std::uint32_t>(bytes.size())},
                    {});
  bytes_ += bytes;
  return id;
}

GrammarBuilder::Id GrammarBuilder::characters(const CharClass& characters) {
  if (!take(characters.ranges().size())) return empty();
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

// One rule for each text that has just been read and may become one of those that are looked for
// (Aho, Corasick, "Efficient String Matching", 1975).
class GrammarBuilder::TextThrough {
 public:
  TextThrough(GrammarBuilder& builder, std::string_view end,
              const std::vector<std::string_view>& without)
      : builder_(builder), texts_{characters_of(end)} {
    for (const std::string_view text : without) texts_.push_back(characters_of(text));
    for (const std::u32string& text : texts_)
      for (std::size_t i = 0; i < text.size(); ++i) {
        states_.try_emplace(text.substr(0, i), 0);
        known_ = known_ | CharClass({{text[i], text[i]}});
      }
    for (auto& [read, rule] : states_) rule = builder.add_rule(fmt::format("text before {}", end));
    for (const auto& [read, rule] : states_) builder.define(rule, behind(read, {}));
  }

  // From the start.
  Id any() const { return builder_.rule(states_.at({})); }
  Id behind(const std::u32string& read, const CharClass& forbidden) const;

 private:
  // Nothing where `text` is the last of a forbidden one.
  std::optional<Id> go_on(std::u32string text) const;

  GrammarBuilder& builder_;
  std::vector<std::u32string> texts_;  // the first ends it, the others are forbidden
  std::map<std::u32string, RuleId> states_;
  CharClass known_;
};

GrammarBuilder::Id GrammarBuilder::TextThrough::behind(const std::u32string& read,
                                                       const CharClass& forbidden) const {
  std::vector<Id> ways;
  for (const CharRange& range : known_.ranges())
    for (char32_t character = range.first; character <= range.last; ++character) {
      if (forbidden.contains(character)) continue;
      const std::optional<Id> rest = go_on(read + character);
      const CharClass one({{character, character}});
      if (rest) ways.push_back(builder_.sequence({builder_.characters(one), *rest}));
    }
  const CharClass others = known_.negated() - forbidden;
  ways.push_back(builder_.sequence({builder_.characters(others), any()}));
  return builder_.choice(std::move(ways));
}

std::optional<GrammarBuilder::Id> GrammarBuilder::TextThrough::go_on(std::u32string text) const {
  for (const std::u32string& whole : texts_)
    if (text.ends_with(whole))
      return &whole == &texts_.front() ? std::optional(builder_.empty()) : std::nullopt;
  while (!states_.contains(text)) text.erase(0, 1);
  return builder_.rule(states_.at(text));
}

GrammarBuilder::Id GrammarBuilder::text_through(std::string_view end,
                                                const std::vector<std::string_view>& without,
                                                const CharClass& not_first) {
  if (end.empty() || !status_.ok()) return empty();
  const TextThrough text(*this, end, without);
  return not_first.empty() ? text.any() : choice({literal(end), text.behind({}, not_first)});
}

GrammarBuilder::RuleId GrammarBuilder::add_rule(std::string name) {
  if (rules_.size() >= GrammarLimits::kRules && status_.ok())
    status_ = resource_exhausted("the grammar has more than {} rules", GrammarLimits::kRules);
  if (!take(1 + name.size() / kNameBytes) && !rules_.empty()) return 0;
  rules_.push_back({std::move(name), empty()});
  return static_cast<RuleId>(rules_.size() - 1);
}

void GrammarBuilder::define(RuleId rule, Id expression) { rules_[rule].expression = expression; }

GrammarBuilder::Id GrammarBuilder::rule(RuleId rule) { return add({Kind::kRule, rule}, {}); }

}  // namespace strata
