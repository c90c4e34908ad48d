#include "grammar/grammar_constraint.h"

namespace strata {

std::span<const std::uint64_t> GrammarConstraint::allowed() {
  if (mask_ == nullptr) mask_ = masks_->mask(matcher_.configuration());
  return *mask_;
}

void GrammarConstraint::advance(TokenId token) {
  if (table().contains(token) && !table().is_end(token)) read(table().bytes(token));
}

bool GrammarConstraint::read(std::string_view bytes) {
  mask_ = nullptr;
  return matcher_.read(bytes);
}

}  // namespace strata
