// What compiling a grammar must know of its expressions.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "base/status.h"
#include "grammar/grammar.h"

namespace strata {

// The first half of GrammarBuilder::compile.
class GrammarCompiler {
 public:
  using Id = GrammarBuilder::Id;
  using RuleId = GrammarBuilder::RuleId;

  explicit GrammarCompiler(GrammarBuilder& builder) : builder_(builder) {}
  Result<Grammar> compile(RuleId root);

 private:
  friend class Lowering;
  using Kind = GrammarBuilder::Kind;
  using Expression = GrammarBuilder::Expression;
  enum class Property : std::uint8_t {
    kNullable,    // matches the empty text
    kProductive,  // matches some text
  };

  const Expression& at(Id id) const { return builder_.expressions_[id]; }
  std::vector<Id> parts_of(Id id) const;

  std::vector<bool> holds(Property property) const;
  // Of the rules that never come to an end, the last on a way from `rule`, which is one.
  RuleId endless_rule(RuleId rule) const;
  // Makes the bodies of all repetitions match no empty text, and the texts of the grammar the same.
  void fill_rounds();
  Id without_empty(Id id);
  Status refuse_left_recursion() const;
  std::vector<Id> beginnings(Id id) const;
  Status left_recursion(Id id) const;
  // Finds the small rules that call no rule but such.
  void choose_inlined();
  std::size_t measure(Id id, std::vector<std::size_t>& sizes) const;

  GrammarBuilder& builder_;
  std::vector<bool> nullable_;
  std::vector<bool> productive_;
  std::vector<bool> inlined_;       // by rule
  std::vector<std::size_t> sizes_;  // by expression: about how many states, at most kLarge
  std::map<Id, Id> without_empty_;
  std::map<RuleId, RuleId> rules_without_empty_;
  std::vector<std::pair<RuleId, RuleId>> pending_rules_;
};

}  // namespace strata
