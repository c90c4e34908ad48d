// Texts that end a repetition, as the token sequences that may write them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "text/tokenizer/tokenizer.h"

namespace strata {

// Ascending and distinct: every token that holds one of the texts, and every token that ends with
// the beginning of one, followed by the tokens of its rest (at most 20). Fails on texts that are
// empty or longer than 40 bytes.
Result<std::vector<std::vector<TokenId>>> sequence_breakers(const Tokenizer& tokenizer,
                                                            std::span<const std::string> texts);

}  // namespace strata
