#include "grammar/grammar_constraint.h"

namespace strata {

Result<std::span<const std::uint64_t>> GrammarConstraint::allowed() {
  if (mask_ == nullptr && !matcher_.too_ambiguous()) mask_ = masks_->mask(matcher_.configuration());
  if (mask_ == nullptr)
    return invalid_argument(
        "the grammar or schema is too ambiguous to follow: what is written so far can be read in "
        "too many ways; let repetitions that stand side by side or within each other begin with "
        "different characters, or leave out their limits");
  return std::span<const std::uint64_t>(*mask_);
}

void GrammarConstraint::advance(TokenId token) {
  if (table().contains(token) && !table().is_end(token)) read(table().bytes(token));
}

bool GrammarConstraint::read(std::string_view bytes) {
  mask_ = nullptr;
  return matcher_.read(bytes);
}

}  // namespace strata
