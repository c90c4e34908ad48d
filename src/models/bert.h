// What a file says of its encoder, beyond the hyper-parameters.
#pragma once

#include <cstdint>

namespace strata {

// The pooling_type of models that score pairs of texts, by a head on the first token.
constexpr std::int64_t kRankPooling = 4;

}  // namespace strata
