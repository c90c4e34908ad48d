#include "grammar/delayed_constraint.h"

#include <algorithm>

namespace strata {
namespace {

constexpr std::size_t kMostMasks = 64;

void clear_bit(TokenMasks::Mask& mask, TokenId token) {
  mask[static_cast<std::size_t>(token) / 64] &= ~(std::uint64_t{1} << (token % 64));
}

}  // namespace

DelayedRules::DelayedRules(std::vector<DelayedGrammar> grammars, DelayOptions options)
    : grammars_(std::move(grammars)), options_(options), table_(grammars_.front().masks->table()) {
  for (const DelayedGrammar& grammar : grammars_) searches_.emplace_back(grammar.trigger);
}

std::shared_ptr<const TokenMasks::Mask> DelayedRules::free_mask(const Matches& matches) {
  const std::lock_guard lock(mutex_);
  if (const auto known = masks_.find(matches); known != masks_.end()) return known->second;
  if (masks_.size() >= kMostMasks) masks_.clear();
  std::optional<TokenMasks::Mask> mask = compute(matches);
  return masks_[matches] =
             mask ? std::make_shared<const TokenMasks::Mask>(std::move(*mask)) : nullptr;
}

std::optional<TokenMasks::Mask> DelayedRules::compute(const Matches& matches) const {
  TokenMasks::Mask mask(table_->mask_words(), ~std::uint64_t{0});
  bool all = true;
  const auto forbid = [&](TokenId token) {
    clear_bit(mask, token);
    all = false;
  };
  if (!options_.may_end_before)
    for (const TokenId end : table_->ends()) forbid(end);
  std::vector<Simulation::Set> path(table_->longest() + 1);
  for (std::size_t i = 0; i < grammars_.size(); ++i) {
    Simulation simulation(*grammars_[i].masks->grammar());
    const Simulation::Set start = simulation.start();
    for (const std::uint32_t node : *table_->ends_of(searches_[i], matches[i])) {
      path[table_->node(node).depth] = start;
      table_->walk(
          node + 1, table_->node(node).end, path,
          [&](Simulation::Set from, std::uint8_t byte) { return simulation.step(from, byte); },
          [&](std::uint32_t at, Simulation::Set reached) {
            if (reached == Simulation::kDead)
              for (const TokenId token : table_->tokens_at(at)) forbid(token);
            return true;
          });
    }
  }
  return all ? std::nullopt : std::optional(std::move(mask));
}

std::span<const std::uint64_t> DelayedConstraint::allowed() {
  if (inner_) return inner_->allowed();
  mask_ = rules_->free_mask(matches_);
  return mask_ == nullptr ? std::span<const std::uint64_t>() : *mask_;
}

void DelayedConstraint::advance(TokenId token) {
  const TokenTable& table = *rules_->table_;
  if (!table.contains(token) || table.is_end(token)) return;
  std::string_view bytes = table.bytes(token);
  if (!inner_) {
    for (std::size_t at = 0; at < bytes.size() && !inner_; ++at) {
      for (std::size_t i = 0; i < matches_.size() && !inner_; ++i) {
        matches_[i] = rules_->searches_[i].next(matches_[i], bytes[at]);
        if (!rules_->searches_[i].found(matches_[i])) continue;
        inner_.emplace(rules_->grammars_[i].masks);
        bytes.remove_prefix(at + 1);
        at = 0;
      }
    }
    if (!inner_) return;
  }
  inner_->read(bytes);
  if (rules_->options_.repeats && inner_->matcher().ended()) {
    inner_.reset();
    std::ranges::fill(matches_, 0);
  }
}

}  // namespace strata
