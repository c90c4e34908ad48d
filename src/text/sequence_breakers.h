// Texts that end a repetition, as the tokens that may write them.
#pragma once

#include <string>
#include <vector>

#include "base/breaker_part.h"
#include "base/status.h"
#include "text/tokenizer/tokenizer.h"

namespace strata {

// Ascending and distinct: every stretch of a text that a token writes, so that a text is found
// however tokens divide it and whatever else its first and last one hold. Fails on texts that are
// empty or longer than 40 bytes.
Result<std::vector<BreakerPart>> sequence_breakers(const Tokenizer& tokenizer,
                                                   std::vector<std::string> texts);

}  // namespace strata
