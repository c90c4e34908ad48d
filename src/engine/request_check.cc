#include "engine/request_check.h"

namespace strata {

Status check_request(const Request& request, const RequestLimits& limits) {
  const auto length = static_cast<std::int64_t>(request.tokens.size());
  if (length == 0) return invalid_argument("the prompt is empty");
  if (!limits.answers && request.max_tokens != 0)
    return invalid_argument("the model was not loaded for answers: max_tokens must be 0, not {}",
                            request.max_tokens);
  // One position must be left for an answer, unless none is wanted.
  const std::int64_t room = limits.context - (request.max_tokens == 0 ? 0 : 1);
  if (length > room)
    return invalid_argument("the prompt has {} tokens but the context holds {}{}", length,
                            limits.context,
                            request.max_tokens == 0 ? "" : ", one of them to answer");
  for (const TokenId token : request.tokens)
    if (token < 0 || token >= limits.vocabulary)
      return invalid_argument("token {} is outside the vocabulary of {}", token, limits.vocabulary);
  Position previous = -1;
  for (const Position position : request.logit_positions) {
    if (position <= previous || position >= length)
      return invalid_argument("logit position {} is not within the prompt's {} in ascending order",
                              position, length);
    previous = position;
  }
  if (request.choices < 1 || request.choices > 1024)
    return invalid_argument("{} choices asked for; 1 to 1024 are possible", request.choices);
  if (request.top_logprobs < -1 || request.top_logprobs > 20)
    return invalid_argument("{} top_logprobs asked for; 0 to 20 are possible",
                            request.top_logprobs);
  return request.sampling.validate(limits.vocabulary);
}

}  // namespace strata
