// Leaves an answer free until it starts a tool call, and holds what follows to the calls' grammar.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/grammar_constraint.h"
#include "text/reasoning.h"
#include "text/tool_calls.h"

namespace strata::serve {

struct CallStart {
  std::vector<ToolGrammar::Trigger> triggers;  // every text of the grammar begins as one
  bool only_at_start = false;                  // elsewhere a trigger is text
  std::string prefix = {};     // what may stand before it there, besides white space
  ThinkingTags thinking = {};  // no call starts in such a block; empty: there are none
  bool in_thinking = false;    // the prompt ends in one
};

class CallConstraint final : public Constraint {
 public:
  // `masks`: of the grammar of calls, the start included.
  CallConstraint(std::shared_ptr<TokenMasks> masks, CallStart start)
      : masks_(std::move(masks)), start_(std::move(start)), in_thinking_(start_.in_thinking) {}

  Result<std::span<const std::uint64_t>> allowed() override;
  bool ready() const override { return !call_ || call_->ready(); }
  void advance(TokenId token) override;
  std::unique_ptr<Constraint> clone() const override {
    return std::make_unique<CallConstraint>(*this);
  }

 private:
  void read(char byte);
  void read_free(char byte);
  bool may_start(std::string_view trigger) const;
  std::string_view text_before(std::string_view tag) const;

  std::shared_ptr<TokenMasks> masks_;
  CallStart start_;
  bool in_thinking_;
  std::string text_;      // that is free, as far as a tag may begin in it
  bool at_start_ = true;  // all of it is in `text_`
  std::optional<GrammarConstraint> call_;
};

}  // namespace strata::serve
