// Keeps an answer to a grammar.
#pragma once

#include <memory>
#include <string_view>

#include "grammar/matcher.h"
#include "grammar/token_masks.h"
#include "sample/constraint.h"

namespace strata {

// From the answer's first token on. An answer may end exactly where the grammar may; where no token
// is allowed, the grammar is at odds with the vocabulary.
class GrammarConstraint : public Constraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<TokenMasks> masks)
      : masks_(std::move(masks)), matcher_(masks_->grammar()), mask_(masks_->start()) {}

  Result<std::span<const std::uint64_t>> allowed() override;
  bool ready() const override { return mask_ != nullptr || matcher_.too_ambiguous(); }
  void advance(TokenId token) override;
  std::unique_ptr<Constraint> clone() const override {
    return std::make_unique<GrammarConstraint>(*this);
  }

  // What comes may start in the midst of a token. False where it must not come.
  bool read(std::string_view bytes);
  const GrammarMatcher& matcher() const { return matcher_; }
  const TokenTable& table() const { return *masks_->table(); }

 private:
  std::shared_ptr<TokenMasks> masks_;
  GrammarMatcher matcher_;
  std::shared_ptr<const TokenMasks::Mask> mask_;  // null where it is not known
};

}  // namespace strata
