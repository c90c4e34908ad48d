// Sampler: one row of logits in, one token out. Pure but for its scratch memory: the choice depends
// on the logits, the parameters, the history and the key alone.
//
// Order: penalties, bias, top-k, top-p, min-p, temperature, then a draw from what is left. Equal
// logits rank by token id, lower first.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "sample/random.h"

namespace strata {

struct SamplingParams {
  float temperature = 0.8f;  // 0: always the largest logit
  std::int32_t top_k = 40;   // keep the k largest; 0: all
  float top_p = 0.95f;       // keep the fewest whose probabilities sum to p; 1: all
  float min_p = 0.05f;       // keep those at least this part as probable as the largest; 0: all
  // Over the last repeat_last_n tokens (0: none, -1: all): logits of tokens that occur are divided
  // (if positive) or multiplied by repeat_penalty, then lowered by presence_penalty, and by
  // frequency_penalty for every time.
  float repeat_penalty = 1.0f;
  std::int32_t repeat_last_n = 64;
  float presence_penalty = 0;
  float frequency_penalty = 0;
  std::vector<std::pair<TokenId, float>> logit_bias;  // added; -infinity forbids
  std::uint64_t seed = 0;

  // Errors name the field and its range.
  Status validate(std::int32_t vocabulary) const;
};

// One per thread; keeps its buffers from call to call.
class Sampler {
 public:
  // REQUIRES: params are valid for logits.size() tokens; history ids lie below it. Fails where a
  // logit is not a number or no token is possible.
  Result<TokenId> sample(std::span<const float> logits, const SamplingParams& params,
                         std::span<const TokenId> history, const RandomKey& key);

 private:
  struct Candidate {
    float logit;
    TokenId token;
    // Better first.
    bool operator<(const Candidate& other) const {
      return logit != other.logit ? logit > other.logit : token < other.token;
    }
  };

  Status gather(std::span<const float> logits);
  void penalize(const SamplingParams& params, std::span<const TokenId> history);
  void keep_top_k(std::int32_t k);
  void keep_top_p(float p);
  void keep_min_p(float p);
  std::size_t sort_more(std::size_t sorted);
  TokenId draw(float temperature, const RandomKey& key);

  std::vector<Candidate> candidates_;
  std::size_t sorted_ = 0;  // the first so many are the best, in order
  std::vector<double> weights_;
  std::vector<TokenId> recent_;
};

struct LogProbability {
  TokenId token = 0;
  double value = 0;  // natural logarithm
};
// The log-probability of `token` first, then of the `top` most probable tokens, best first. Of the
// logits as they are: no penalty, bias or temperature.
std::vector<LogProbability> log_probabilities(std::span<const float> logits, TokenId token,
                                              std::int32_t top);

}  // namespace strata
