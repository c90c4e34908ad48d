// How to choose a token: the parameters of all stages, their names, ranges and order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/breaker_part.h"
#include "base/status.h"
#include "base/units.h"

namespace strata {

// A step between the logits and the draw. Each sees what the stages before it left.
enum class SamplingStage : std::uint8_t {
  kPenalties,
  kDry,
  kTopNSigma,
  kTopK,
  kTypicalP,
  kTopP,
  kMinP,
  kXtc,
  kTemperature,
};

struct SamplingParams {
  // Temperature. The stage divides the logits by it; 0 keeps the largest alone. With a range, the
  // divisor is min + (max - min) * (H / H_max) ^ exponent, between temperature -+ range, where H is
  // the entropy of the candidates.
  float temperature = 0.8f;
  float dynatemp_range = 0;  // 0: off
  float dynatemp_exponent = 1;

  // Filters. None but top_k and top_n_sigma leaves fewer than min_keep where there were more.
  std::int32_t top_k = 40;  // keep the k largest; 0 or -1: all
  float top_p = 0.95f;      // keep the fewest whose probabilities sum to p; 1: all
  float min_p = 0.05f;      // keep those at least this part as probable as the largest; 0: all
  float typical_p = 1;      // as top_p, but those first whose surprise is nearest the entropy
  float top_n_sigma = 0;    // keep logits within so many standard deviations of the largest; 0: all
  float xtc_probability = 0;   // how often all tokens but the least of those at least
  float xtc_threshold = 0.1f;  // this probable are dropped
  std::int32_t min_keep = 0;

  // Penalties, over the last repeat_last_n tokens (0: none, -1: all): logits of tokens that occur
  // are divided (if positive) or multiplied by repeat_penalty, then lowered by presence_penalty,
  // and by frequency_penalty for every time.
  float repeat_penalty = 1;
  std::int32_t repeat_last_n = 64;
  float presence_penalty = 0;
  float frequency_penalty = 0;

  // "Don't repeat yourself", over the last dry_penalty_last_n tokens (0: none, -1: all): the logit
  // of a token that would prolong a repetition of n >= dry_allowed_length tokens is lowered by
  // dry_multiplier * dry_base ^ (n - dry_allowed_length). Repetitions do not reach back over a
  // breaker, a text; its parts are in ascending order.
  float dry_multiplier = 0;  // 0: off
  float dry_base = 1.75f;
  std::int32_t dry_allowed_length = 2;
  std::int32_t dry_penalty_last_n = -1;
  std::vector<BreakerPart> dry_breakers;

  // Mirostat 2 (Basu, Ramachandran, Keskar, Varshney, "Mirostat: A Neural Text Decoding Algorithm
  // that Directly Controls Perplexity", 2021) in place of all filters.
  std::int32_t mirostat = 0;  // 0: off; 2: on
  float mirostat_tau = 5;     // aimed-at surprise, in bits
  float mirostat_eta = 0.1f;  // learning rate

  // Stages left out do not run.
  std::vector<SamplingStage> order = {
      SamplingStage::kPenalties, SamplingStage::kDry,      SamplingStage::kTopNSigma,
      SamplingStage::kTopK,      SamplingStage::kTypicalP, SamplingStage::kTopP,
      SamplingStage::kMinP,      SamplingStage::kXtc,      SamplingStage::kTemperature};

  std::vector<std::pair<TokenId, float>> logit_bias;  // added first; -infinity forbids
  std::uint64_t seed = 0;

  bool greedy() const { return temperature == 0 && dynatemp_range == 0; }
  // Errors name the field and its range; `wrong`, if given, then holds the field's name.
  Status validate(std::int32_t vocabulary, std::string_view* wrong = nullptr) const;
};

// A parameter that is one number.
struct SamplingField {
  std::string_view name;
  std::variant<float SamplingParams::*, std::int32_t SamplingParams::*,
               std::uint64_t SamplingParams::*>
      member;
  double low;
  double high;
  std::string_view help;
};
std::span<const SamplingField> sampling_fields();

std::string_view to_string(SamplingStage stage);
std::string to_string(std::span<const SamplingStage> order);
// The names of stages between semicolons or commas; other spellings that are common are accepted.
// Fails on names that are unknown or come twice.
Result<std::vector<SamplingStage>> parse_sampling_order(std::string_view text);

}  // namespace strata
