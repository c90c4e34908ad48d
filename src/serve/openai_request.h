// Requests of the OpenAI protocol.
#pragma once

#include <string>
#include <vector>

#include "serve/generation.h"

namespace strata::serve {

struct OpenAiRequest {
  std::vector<Generation> generations;  // one for each prompt
  bool stream = false;
  bool include_usage = false;
  bool echo = false;
  bool wants_logprobs = false;
};
Answer<OpenAiRequest> read_chat_request(std::string_view body);
Answer<OpenAiRequest> read_completion_request(std::string_view body);

}  // namespace strata::serve
