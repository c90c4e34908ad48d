// The second half of GrammarBuilder::compile: expressions become states, from the last to the first
// (Thompson, "Regular Expression Search Algorithm", 1968), and rules calls.
#include <algorithm>
#include <bitset>

#include "grammar/analysis.h"
#include "grammar/simulation.h"

namespace strata {
namespace {

using StateId = std::uint32_t;
using Bytes256 = std::bitset<256>;

constexpr std::size_t kMostCopies = 64;    // states by which a repetition may grow
constexpr std::size_t kMostFlattened = 8;  // targets that move from a split to another
constexpr std::size_t kMostMerged = 4;     // states of a split that others are merged into

}  // namespace

class Lowering {
 public:
  using Id = GrammarBuilder::Id;
  using RuleId = GrammarBuilder::RuleId;
  using Kind = GrammarBuilder::Kind;

  explicit Lowering(const GrammarCompiler& grammar)
      : grammar_(grammar), rule_starts_(grammar.builder_.rules_.size(), kNoState) {}

  Result<Automaton> lower_rules(RuleId root) {
    return_ = add_state({});
    pending_ = {root};
    while (!pending_.empty() && !full_) {
      const RuleId rule = pending_.back();
      pending_.pop_back();
      if (rule_starts_[rule] == kNoState)
        rule_starts_[rule] = lower(grammar_.builder_.rules_[rule].expression, return_);
    }
    if (full_)
      return resource_exhausted("the grammar needs more than {} states", GrammarLimits::kStates);
    for (Automaton::State& state : out_.states)
      if (state.kind == Automaton::Kind::kCall) state.target = rule_starts_[state.target];
    out_.start = rule_starts_[root];
    return std::move(out_);
  }

 private:
  StateId add_state(Automaton::State state) {
    full_ |= out_.states.size() >= GrammarLimits::kStates ||
             out_.edges.size() + out_.targets.size() >= 4 * GrammarLimits::kStates;
    if (full_) return 0;
    state.body = body_;
    out_.states.push_back(state);
    return static_cast<StateId>(out_.states.size() - 1);
  }

  StateId add_bytes(const std::vector<Automaton::Edge>& edges) {
    const auto first = static_cast<std::uint32_t>(out_.edges.size());
    out_.edges.insert(out_.edges.end(), edges.begin(), edges.end());
    return add_state({Automaton::Kind::kBytes, first, static_cast<std::uint32_t>(edges.size())});
  }

  std::vector<Automaton::Edge> edges_of(const Automaton::State& state) const {
    const auto first = out_.edges.begin() + state.first;
    return {first, first + state.count};
  }

  // The state after which `expression` and then `next` are read. REQUIRES: productive.
  StateId lower(Id id, StateId next) {
    if (full_) return 0;
    const auto& expression = grammar_.at(id);
    switch (expression.kind) {
      case Kind::kLiteral: return lower_literal(id, next);
      case Kind::kCharacters:
        return lower_characters(grammar_.builder_.classes_[expression.first], next);
      case Kind::kSequence: {
        const std::vector<Id> parts = grammar_.parts_of(id);
        for (std::size_t i = parts.size(); i-- > 0;) next = lower(parts[i], next);
        return next;
      }
      case Kind::kChoice: return lower_choice(id, next);
      case Kind::kRepeat: return lower_repeat(id, next);
      case Kind::kRule: return lower_rule(expression.first, next);
    }
    return 0;
  }

  std::string_view literal(Id id) const {
    const auto& expression = grammar_.at(id);
    return std::string_view(grammar_.builder_.bytes_).substr(expression.first, expression.count);
  }

  StateId lower_literal(Id id, StateId next) {
    const std::string_view bytes = literal(id);
    for (std::size_t i = bytes.size(); i-- > 0;) {
      const auto byte = static_cast<std::uint8_t>(bytes[i]);
      next = add_bytes({{byte, byte, next}});
    }
    return next;
  }

  StateId lower_characters(const CharClass& characters, StateId next) {
    std::map<std::string, StateId> tails;
    return lower_sequences(utf8_sequences(characters), 0, next, tails);
  }

  // Sequences that are equal up to `position`; `tails` knows the states for those met before.
  StateId lower_sequences(std::span<const ByteSequence> sequences, std::size_t position,
                          StateId next, std::map<std::string, StateId>& tails) {
    std::string key;
    for (const ByteSequence& sequence : sequences)
      for (std::size_t i = position; i < 4; ++i) {
        const bool inside = i < sequence.length;
        key += static_cast<char>(inside ? sequence.ranges[i].first : 0);
        key += static_cast<char>(inside ? sequence.ranges[i].last : 0);
      }
    if (const auto known = tails.find(key); known != tails.end()) return known->second;
    std::vector<Automaton::Edge> edges;
    for (std::size_t i = 0; i < sequences.size();) {
      const ByteRange range = sequences[i].ranges[position];
      std::size_t end = i + 1;
      while (end < sequences.size() && sequences[end].ranges[position] == range) ++end;
      const StateId target =
          sequences[i].length == position + 1
              ? next
              : lower_sequences(sequences.subspan(i, end - i), position + 1, next, tails);
      edges.push_back({range.first, range.last, target});
      i = end;
    }
    return tails[key] = add_bytes(edges);
  }

  StateId lower_choice(Id id, StateId next) {
    std::vector<StateId> targets;
    std::vector<std::string_view> literals;
    for (const Id part : grammar_.parts_of(id)) {
      if (!grammar_.productive_[part]) continue;
      if (grammar_.at(part).kind == Kind::kLiteral && grammar_.at(part).count > 0)
        literals.push_back(literal(part));
      else
        targets.push_back(lower(part, next));
    }
    if (!literals.empty()) targets.push_back(lower_literals(std::move(literals), next));
    return add_split(targets);
  }

  // As a tree of their common beginnings.
  StateId lower_literals(std::vector<std::string_view> literals, StateId next) {
    struct Node {
      bool ends = false;
      std::vector<std::pair<std::uint8_t, std::size_t>> children;
    };
    std::ranges::sort(literals);
    std::vector<Node> nodes(1);
    for (const std::string_view text : literals) {
      std::size_t at = 0;
      for (const char c : text) {
        const auto byte = static_cast<std::uint8_t>(c);
        if (nodes[at].children.empty() || nodes[at].children.back().first != byte) {
          nodes[at].children.emplace_back(byte, nodes.size());
          nodes.emplace_back();
        }
        at = nodes[at].children.back().second;
      }
      nodes[at].ends = true;
    }
    // Children stand behind their parents.
    std::vector<StateId> states(nodes.size());
    for (std::size_t i = nodes.size(); i-- > 0;) {
      std::vector<Automaton::Edge> edges;
      for (const auto& [byte, child] : nodes[i].children)
        edges.push_back({byte, byte, states[child]});
      std::vector<StateId> targets;
      if (!edges.empty()) targets.push_back(add_bytes(edges));
      if (nodes[i].ends) targets.push_back(next);
      states[i] = add_split(targets);
    }
    return states[0];
  }

  StateId lower_repeat(Id id, StateId next) {
    const auto& e = grammar_.at(id);
    const Id body = grammar_.parts_of(id)[0];
    if (!grammar_.productive_[body]) return next;
    const std::size_t size = grammar_.sizes_[body];
    const std::uint32_t copies = e.max == kUnbounded ? e.min : e.max;
    if (copies > 1 && size * copies > kMostCopies) return lower_counted(e.min, e.max, body, next);
    StateId start = next;
    std::uint32_t left = e.min;
    if (e.max == kUnbounded) {
      const StateId loop = add_state({Automaton::Kind::kSplit});
      const StateId round = lower(body, loop);
      set_split(loop, {round, next});
      start = e.min == 0 ? loop : round;
      left -= std::min(left, 1u);
    } else {
      for (std::uint32_t i = e.min; i < e.max && !full_; ++i)
        start = add_split({lower(body, start), next});
    }
    while (left-- > 0 && !full_) start = lower(body, start);
    return start;
  }

  StateId lower_counted(std::uint32_t min, std::uint32_t max, Id body, StateId next) {
    auto [known, is_new] = bodies_.try_emplace(body, static_cast<std::uint32_t>(bodies_.size()));
    const std::uint32_t index = known->second;
    if (is_new) {
      out_.bodies.push_back(kNoState);
      const std::uint32_t outer = std::exchange(body_, index);
      const StateId start = lower(body, return_);
      out_.bodies[index] = start;
      body_ = outer;
    }
    out_.repetitions.push_back({index, next, min, max});
    return add_state(
        {Automaton::Kind::kRepeat, static_cast<std::uint32_t>(out_.repetitions.size() - 1)});
  }

  StateId lower_rule(RuleId rule, StateId next) {
    if (grammar_.inlined_[rule] && out_.states.size() < GrammarLimits::kStates / 4)
      return lower(grammar_.builder_.rules_[rule].expression, next);
    if (rule_starts_[rule] == kNoState) pending_.push_back(rule);
    // At the end of a rule or round what is on the stack is what the called rule returns to.
    return add_state({Automaton::Kind::kCall, next == return_ ? kNoState : next, 0, rule});
  }

  StateId add_split(const std::vector<StateId>& targets) {
    const std::vector<StateId> merged = merge(targets);
    if (merged.size() == 1) return merged[0];
    const StateId split = add_state({Automaton::Kind::kSplit});
    set_targets(split, merged);
    return split;
  }

  void set_split(StateId split, const std::vector<StateId>& targets) {
    set_targets(split, merge(targets));
  }

  void set_targets(StateId split, const std::vector<StateId>& targets) {
    if (full_) return;
    out_.states[split].first = static_cast<std::uint32_t>(out_.targets.size());
    out_.states[split].count = static_cast<std::uint32_t>(targets.size());
    out_.targets.insert(out_.targets.end(), targets.begin(), targets.end());
  }

  // The same targets as fewer: small splits dissolve, and states whose bytes differ become one.
  std::vector<StateId> merge(const std::vector<StateId>& targets) {
    std::vector<StateId> out;
    std::vector<StateId> readers;
    const auto sort_in = [&](StateId target) {
      const bool reads = out_.states[target].kind == Automaton::Kind::kBytes;
      (reads ? readers : out).push_back(target);
    };
    if (full_) return targets;
    for (const StateId target : targets) {
      const Automaton::State state = out_.states[target];
      if (state.kind == Automaton::Kind::kSplit && state.count <= kMostFlattened && state.count > 0)
        for (std::uint32_t i = 0; i < state.count; ++i) sort_in(out_.targets[state.first + i]);
      else
        sort_in(target);
    }
    for (std::vector<StateId>* list : {&out, &readers}) {
      std::ranges::sort(*list);
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    merge_readers(readers, out);
    return out;
  }

  void merge_readers(const std::vector<StateId>& readers, std::vector<StateId>& out) {
    struct Group {
      Bytes256 bytes;
      std::vector<Automaton::Edge> edges;
      StateId alone = kNoState;
    };
    std::vector<Group> groups;
    for (const StateId reader : readers) {
      Group next{{}, edges_of(out_.states[reader]), reader};
      for (const Automaton::Edge& edge : next.edges)
        for (unsigned byte = edge.first; byte <= edge.last; ++byte) next.bytes.set(byte);
      const auto end =
          groups.begin() + static_cast<std::ptrdiff_t>(std::min(groups.size(), kMostMerged));
      const auto found = std::find_if(groups.begin(), end, [&](const Group& group) {
        return (group.bytes & next.bytes).none();
      });
      if (found == end) {
        groups.push_back(std::move(next));
        continue;
      }
      found->bytes |= next.bytes;
      found->edges.insert(found->edges.end(), next.edges.begin(), next.edges.end());
      found->alone = kNoState;
    }
    for (const Group& group : groups)
      out.push_back(group.alone != kNoState ? group.alone : add_bytes(group.edges));
  }

  const GrammarCompiler& grammar_;
  Automaton out_;
  StateId return_ = kNoState;
  std::uint32_t body_ = kNoState;
  std::map<Id, std::uint32_t> bodies_;
  std::vector<StateId> rule_starts_;
  std::vector<RuleId> pending_;
  bool full_ = false;
};

Result<Grammar> GrammarCompiler::compile(RuleId root) {
  STRATA_TRY(builder_.status_);
  nullable_ = holds(Property::kNullable);
  fill_rounds();
  STRATA_TRY(builder_.status_);
  nullable_ = holds(Property::kNullable);
  STRATA_TRY(refuse_left_recursion());
  productive_ = holds(Property::kProductive);
  builder_.require(root);
  for (const RuleId rule : builder_.required_)
    if (!productive_[builder_.rules_[rule].expression])
      return invalid_argument("{} matches no text: it allows nothing, or never comes to an end",
                              builder_.rules_[endless_rule(rule)].name);
  choose_inlined();
  STRATA_ASSIGN(Automaton automaton, Lowering(*this).lower_rules(root));
  auto grammar = std::make_shared<const Automaton>(std::move(automaton));
  Simulation simulation(*grammar);
  const bool nowhere = simulation.threads(simulation.start()).empty();
  if (simulation.overflowed())
    return resource_exhausted("{} can begin in too many ways", builder_.rules_[root].name);
  if (nowhere)
    return resource_exhausted("{} calls rules nested too deep before its first byte",
                              builder_.rules_[root].name);
  return Grammar(std::move(grammar));
}

Result<Grammar> GrammarBuilder::compile(RuleId root) {
  return GrammarCompiler(*this).compile(root);
}

}  // namespace strata
