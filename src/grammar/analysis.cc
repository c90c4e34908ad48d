#include "grammar/analysis.h"

#include <algorithm>

namespace strata {
namespace {

constexpr std::size_t kLarge = 65;  // a size that no inlined rule has
constexpr int kInlinedNesting = 4;  // of inlined rules
constexpr std::size_t kNotMeasured = static_cast<std::size_t>(-1);

}  // namespace

std::vector<GrammarCompiler::Id> GrammarCompiler::parts_of(Id id) const {
  const Expression& e = at(id);
  if (e.kind == Kind::kRule) return {builder_.rules_[e.first].expression};
  if (e.kind == Kind::kLiteral || e.kind == Kind::kCharacters) return {};
  const auto first = builder_.parts_.begin() + e.first;
  return {first, first + e.count};
}

// Every expression waits for as many of its parts as it needs.
std::vector<bool> GrammarCompiler::holds(Property property) const {
  const std::size_t count = builder_.expressions_.size();
  std::vector<std::uint32_t> missing(count), user_ends(count + 1);
  std::vector<Id> ready;
  for (Id id = 0; id < count; ++id) {
    const Expression& e = at(id);
    for (const Id part : parts_of(id)) ++user_ends[part + 1];
    bool at_once = e.kind == Kind::kRepeat && e.min == 0;
    if (e.kind == Kind::kLiteral) at_once = property == Property::kProductive || e.count == 0;
    if (e.kind == Kind::kCharacters)
      at_once = property == Property::kProductive && !builder_.classes_[e.first].empty();
    missing[id] = e.kind == Kind::kSequence ? e.count : 1;
    if (at_once) ready.push_back(id);
  }
  for (std::size_t i = 0; i < count; ++i) user_ends[i + 1] += user_ends[i];
  std::vector<Id> users(user_ends[count]);
  std::vector<std::uint32_t> filled(user_ends.begin(), user_ends.end() - 1);
  for (Id id = 0; id < count; ++id)
    for (const Id part : parts_of(id)) users[filled[part]++] = id;
  std::vector<bool> holding(count);
  for (const Id id : ready) holding[id] = true;
  while (!ready.empty()) {
    const Id id = ready.back();
    ready.pop_back();
    for (std::uint32_t i = user_ends[id]; i < user_ends[id + 1]; ++i) {
      const Id user = users[i];
      if (holding[user] || --missing[user] != 0) continue;
      holding[user] = true;
      ready.push_back(user);
    }
  }
  return holding;
}

GrammarBuilder::RuleId GrammarCompiler::endless_rule(RuleId rule) const {
  std::vector<bool> seen(builder_.expressions_.size());
  Id id = builder_.rules_[rule].expression;
  while (!seen[id]) {
    seen[id] = true;
    if (at(id).kind == Kind::kRule) rule = at(id).first;
    const std::vector<Id> parts = parts_of(id);
    const auto endless =
        std::ranges::find_if(parts, [&](const Id part) { return !productive_[part]; });
    if (endless != parts.end()) id = *endless;
  }
  return rule;
}

void GrammarCompiler::fill_rounds() {
  for (Id id = 0; id < builder_.expressions_.size() && builder_.status_.ok(); ++id) {
    if (at(id).kind == Kind::kRepeat) {
      const Id body = builder_.parts_[at(id).first];
      if (const Id filled = without_empty(body); filled != body) {
        builder_.parts_[at(id).first] = filled;
        builder_.expressions_[id].min = 0;
      }
    }
    while (!pending_rules_.empty() && builder_.status_.ok()) {
      const auto [rule, filled] = pending_rules_.back();
      pending_rules_.pop_back();
      builder_.define(filled, without_empty(builder_.rules_[rule].expression));
    }
  }
}

// What matches the same texts but the empty one. Expressions that this adds match no empty text.
GrammarCompiler::Id GrammarCompiler::without_empty(Id id) {
  if (id >= nullable_.size() || !nullable_[id]) return id;
  if (const auto known = without_empty_.find(id); known != without_empty_.end())
    return known->second;
  const Expression e = at(id);
  const std::vector<Id> parts = parts_of(id);
  std::vector<Id> made;
  Id out = builder_.choice({});
  if (e.kind == Kind::kRule) {
    auto [rule, is_new] = rules_without_empty_.try_emplace(e.first, 0);
    if (is_new) {
      rule->second = builder_.add_rule(builder_.rules_[e.first].name);
      pending_rules_.emplace_back(e.first, rule->second);
    }
    out = builder_.rule(rule->second);
  } else if (e.kind == Kind::kRepeat) {
    const Id body = without_empty(parts[0]);
    out = builder_.repeat(body, 1, e.max);
  } else if (e.kind == Kind::kChoice) {
    for (const Id part : parts) made.push_back(without_empty(part));
    out = builder_.choice(made);
  } else if (e.kind == Kind::kSequence) {
    // All parts are nullable: one of them is the first that is not empty.
    for (std::size_t i = 0; i < parts.size() && builder_.status_.ok(); ++i) {
      std::vector<Id> rest(parts.begin() + static_cast<std::ptrdiff_t>(i), parts.end());
      rest[0] = without_empty(parts[i]);
      made.push_back(builder_.sequence(std::move(rest)));
    }
    out = builder_.choice(made);
  }
  without_empty_[id] = out;
  return out;
}

// What the expression may start with.
std::vector<GrammarCompiler::Id> GrammarCompiler::beginnings(Id id) const {
  std::vector<Id> parts = parts_of(id);
  if (at(id).kind != Kind::kSequence) return parts;
  const auto solid = std::ranges::find_if(parts, [&](Id part) { return !nullable_[part]; });
  if (solid != parts.end()) parts.erase(solid + 1, parts.end());
  return parts;
}

// Looks for a circle among the beginnings of expressions.
Status GrammarCompiler::refuse_left_recursion() const {
  struct Open {
    Id id;
    std::vector<Id> left;
  };
  enum class Seen : std::uint8_t { kNot, kOpen, kDone };
  std::vector<Seen> seen(builder_.expressions_.size(), Seen::kNot);
  std::vector<Open> path;
  const auto enter = [&](Id id) {
    seen[id] = Seen::kOpen;
    path.push_back({id, beginnings(id)});
  };
  for (const auto& rule : builder_.rules_) {
    if (seen[rule.expression] == Seen::kNot) enter(rule.expression);
    while (!path.empty()) {
      Open& open = path.back();
      if (open.left.empty()) {
        seen[open.id] = Seen::kDone;
        path.pop_back();
        continue;
      }
      const Id next = open.left.back();
      open.left.pop_back();
      if (seen[next] == Seen::kOpen) return left_recursion(next);
      if (seen[next] == Seen::kNot) enter(next);
    }
  }
  return {};
}

// REQUIRES: the expression may start with itself.
Status GrammarCompiler::left_recursion(Id id) const {
  // The circle passes through a rule, whose expression is found by following it.
  for (const auto& rule : builder_.rules_)
    if (rule.expression == id)
      return invalid_argument("{} may begin with itself (left recursion)", rule.name);
  std::vector<bool> seen(builder_.expressions_.size());
  std::vector<Id> next = {id};
  while (!next.empty()) {
    const Id current = next.back();
    next.pop_back();
    if (seen[current]) continue;
    seen[current] = true;
    if (at(current).kind == Kind::kRule)
      return invalid_argument("{} may begin with itself (left recursion)",
                              builder_.rules_[at(current).first].name);
    for (const Id part : beginnings(current)) next.push_back(part);
  }
  return internal_error("a circle of expressions without a rule");
}

// REQUIRES: nesting within the limit. Rules that are not inlined count as large.
std::size_t GrammarCompiler::measure(Id id, std::vector<std::size_t>& sizes) const {
  if (sizes[id] != kNotMeasured) return sizes[id];
  const Expression& e = at(id);
  std::size_t size = e.kind == Kind::kLiteral ? e.count : 1;
  if (e.kind == Kind::kCharacters) {
    size = builder_.classes_[e.first].ranges().size() * 2;
  } else if (e.kind == Kind::kRule) {
    size = inlined_[e.first] ? measure(builder_.rules_[e.first].expression, sizes) : kLarge;
  } else {
    for (const Id part : parts_of(id)) size = std::min(kLarge, size + measure(part, sizes));
    if (e.kind == Kind::kRepeat) {
      const std::size_t times = e.max == kUnbounded ? std::max(1u, e.min) : e.max;
      size = std::min(kLarge, size * times);
    }
  }
  return sizes[id] = std::min(kLarge, size);
}

void GrammarCompiler::choose_inlined() {
  const auto& rules = builder_.rules_;
  inlined_.assign(rules.size(), false);
  for (int round = 0; round <= kInlinedNesting; ++round) {
    sizes_.assign(builder_.expressions_.size(), kNotMeasured);
    std::vector<bool> chosen(rules.size());
    for (std::size_t i = 0; i < rules.size(); ++i)
      chosen[i] = inlined_[i] || measure(rules[i].expression, sizes_) < kLarge;
    if (round < kInlinedNesting) inlined_ = chosen;
  }
}

}  // namespace strata
