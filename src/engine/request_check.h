// What a request must be for an engine to take it.
#pragma once

#include "engine/engine.h"

namespace strata {

// What a loaded model and its options allow.
struct RequestLimits {
  std::int32_t context = 0;
  std::int32_t vocabulary = 0;
  bool answers = true;  // the model has logits, so that max_tokens may be more than 0
};

// kInvalidArgument names what is wrong.
Status check_request(const Request& request, const RequestLimits& limits);

}  // namespace strata
