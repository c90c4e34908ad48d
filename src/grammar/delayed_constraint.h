// Keeps to a grammar only what follows certain texts.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "grammar/grammar_constraint.h"
#include "grammar/text_search.h"

namespace strata {

struct DelayedGrammar {
  std::string trigger;  // not empty
  std::shared_ptr<TokenMasks> masks;
};

struct DelayOptions {
  // Once a grammar's text has come to its end, where nothing may follow it, all is allowed again
  // until the next trigger. False: the answer ends with it.
  bool repeats = false;
  bool may_end_before = true;  // whether the answer may end without a trigger
};

// What all answers of a request share. Safe to use from any thread.
class DelayedRules {
 public:
  // REQUIRES: grammars are some, of one vocabulary.
  DelayedRules(std::vector<DelayedGrammar> grammars, DelayOptions options);

 private:
  friend class DelayedConstraint;
  using Matches = std::vector<std::uint32_t>;  // how much of each trigger has just been read

  // A token may hold the end of a trigger and what follows; that must suit the grammar. Null: all
  // tokens are allowed.
  std::shared_ptr<const TokenMasks::Mask> free_mask(const Matches& matches);
  std::optional<TokenMasks::Mask> compute(const Matches& matches) const;

  const std::vector<DelayedGrammar> grammars_;
  const DelayOptions options_;
  const std::shared_ptr<const TokenTable> table_;
  std::vector<TextSearch> searches_;
  std::mutex mutex_;  // guards masks_
  std::map<Matches, std::shared_ptr<const TokenMasks::Mask>> masks_;
};

// Allows everything until the answer's text holds a trigger, wherever in a token that ends; from
// the byte after it, the grammar applies.
class DelayedConstraint : public Constraint {
 public:
  explicit DelayedConstraint(std::shared_ptr<DelayedRules> rules)
      : rules_(std::move(rules)), matches_(rules_->grammars_.size()) {}

  std::span<const std::uint64_t> allowed() override;
  void advance(TokenId token) override;
  std::unique_ptr<Constraint> clone() const override {
    return std::make_unique<DelayedConstraint>(*this);
  }

 private:
  std::shared_ptr<DelayedRules> rules_;
  DelayedRules::Matches matches_;
  std::optional<GrammarConstraint> inner_;  // where a grammar applies
  std::shared_ptr<const TokenMasks::Mask> mask_;
};

}  // namespace strata
