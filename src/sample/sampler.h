// Sampler: one row of logits in, one token out. Pure but for its scratch memory: the choice depends
// on the logits, the parameters, the history, the key and the sequence's state alone.
//
// Bias first, then the stages in the order of the parameters, then a draw from what is left. Equal
// logits rank by token id, lower first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "sample/random.h"
#include "sample/repetition.h"
#include "sample/sampling_params.h"

namespace strata {

// What a sequence's earlier draws left for its next one; a new sequence starts with none.
struct SamplerState {
  std::optional<double> mirostat_mu;  // the largest surprise allowed, in bits
};

// One per thread; keeps its buffers from call to call.
class Sampler {
 public:
  // `allowed` is as Constraint::allowed() gives it: the tokens without a bit are no candidates of
  // any stage. REQUIRES: params are valid for logits.size() tokens; history ids lie below it.
  // Fails, the state as it was, where a candidate's logit is not a number or no token is possible.
  Result<TokenId> sample(std::span<const float> logits, const SamplingParams& params,
                         std::span<const TokenId> history, const RandomKey& key,
                         SamplerState& state, std::span<const std::uint64_t> allowed);

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
  // At least the `count` largest, and equal ones to the last of these.
  Status gather_largest(std::span<const float> logits, std::size_t count);
  Status gather_allowed(std::span<const float> logits, std::span<const std::uint64_t> allowed);
  void add_bias(const SamplingParams& params);
  void run(SamplingStage stage, const SamplingParams& params, std::span<const TokenId> history,
           const RandomKey& key);
  void penalize(const SamplingParams& params, std::span<const TokenId> history);
  void penalize_repetition(const SamplingParams& params, std::span<const TokenId> history);
  void keep_top_n_sigma(float n);
  void keep_top_k(std::int32_t k);
  void keep_typical(const SamplingParams& params);
  void keep_top_p(const SamplingParams& params);
  void keep_min_p(const SamplingParams& params);
  void drop_top_choices(const SamplingParams& params, const RandomKey& key);
  void apply_temperature(const SamplingParams& params);
  void keep_up_to_surprise(double bits);
  void keep_best();
  void keep_nearest(double mass, std::size_t least);

  Candidate* find(TokenId token);  // null where it is none
  template <typename Change>
  void change_logit(TokenId token, Change change);
  Candidate best() const;
  double weigh();
  double mean_distance(double total) const;
  std::size_t draw(double total, const RandomKey& key) const;

  std::vector<Candidate> candidates_;  // ascending tokens, finite logits
  std::vector<float> maxima_;          // of blocks of logits
  std::vector<float> ranked_maxima_;
  std::vector<double> distances_;  // of the candidates' logits to the largest
  std::vector<double> weights_;    // e^-distance
  std::vector<Candidate> ranked_;
  std::vector<std::size_t> ranks_;
  std::vector<TokenId> recent_;
  RepetitionFinder repetitions_;
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
