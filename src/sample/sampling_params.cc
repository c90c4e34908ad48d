#include "sample/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/printable.h"

namespace strata {
namespace {

constexpr double kMostInt = std::numeric_limits<std::int32_t>::max();
constexpr double kMostSeed = 0x1p64;

using Params = SamplingParams;
constexpr SamplingField kFields[] = {
    {"temperature", &Params::temperature, 0, 100, "0 always takes the best token"},
    {"dynatemp_range", &Params::dynatemp_range, 0, 100,
     "The temperature follows the entropy within this range; 0: off"},
    {"dynatemp_exponent", &Params::dynatemp_exponent, 0, 100, "How it follows the entropy"},
    {"top_k", &Params::top_k, -1, kMostInt, "Keep the k best tokens; 0 or -1: all"},
    {"top_p", &Params::top_p, 0, 1, "Keep the best tokens up to this probability; 1: all"},
    {"min_p", &Params::min_p, 0, 1, "Keep tokens this probable next to the best; 0: all"},
    {"typical_p", &Params::typical_p, 0, 1,
     "Keep the most typical tokens up to this probability; 1: all"},
    {"top_n_sigma", &Params::top_n_sigma, 0, 1000,
     "Keep logits within so many standard deviations of the best; 0: all"},
    {"xtc_probability", &Params::xtc_probability, 0, 1,
     "How often only the least of the probable tokens is kept; 0: never"},
    {"xtc_threshold", &Params::xtc_threshold, 0, 1,
     "Probability from which a token counts for that"},
    {"min_keep", &Params::min_keep, 0, kMostInt,
     "Tokens that each of the filters by probability leaves at least"},
    {"repeat_penalty", &Params::repeat_penalty, 0.01f, 100,
     "Divides positive logits of recent tokens, multiplies negative ones; 1: none"},
    {"repeat_last_n", &Params::repeat_last_n, -1, kMostInt,
     "Tokens that penalties look back at; -1: all"},
    {"presence_penalty", &Params::presence_penalty, -100, 100,
     "Subtracted from the logits of recent tokens"},
    {"frequency_penalty", &Params::frequency_penalty, -100, 100,
     "Subtracted for every time a recent token occurs"},
    {"dry_multiplier", &Params::dry_multiplier, 0, 100,
     "Penalty on tokens that prolong a repetition; 0: off"},
    {"dry_base", &Params::dry_base, 1, 100, "How it grows with every token repeated"},
    {"dry_allowed_length", &Params::dry_allowed_length, 1, kMostInt,
     "Tokens that may be repeated without it"},
    {"dry_penalty_last_n", &Params::dry_penalty_last_n, -1, kMostInt,
     "Tokens looked back at for repetitions; -1: all"},
    {"mirostat", &Params::mirostat, 0, 2, "2: Mirostat 2 in place of the filters; 0: off"},
    {"mirostat_tau", &Params::mirostat_tau, 0, 100, "Surprise that Mirostat aims at, in bits"},
    {"mirostat_eta", &Params::mirostat_eta, 0, 1, "Mirostat's learning rate"},
    {"seed", &Params::seed, 0, kMostSeed, "Makes answers repeatable (default: random)"},
};

struct StageName {
  std::string_view name;
  SamplingStage stage;
};
// The first name of a stage is its own.
constexpr StageName kStageNames[] = {
    {"penalties", SamplingStage::kPenalties},
    {"dry", SamplingStage::kDry},
    {"top_n_sigma", SamplingStage::kTopNSigma},
    {"top_k", SamplingStage::kTopK},
    {"typ_p", SamplingStage::kTypicalP},
    {"top_p", SamplingStage::kTopP},
    {"min_p", SamplingStage::kMinP},
    {"xtc", SamplingStage::kXtc},
    {"temperature", SamplingStage::kTemperature},
    {"typical_p", SamplingStage::kTypicalP},
    {"typical", SamplingStage::kTypicalP},
    {"typ", SamplingStage::kTypicalP},
    {"nucleus", SamplingStage::kTopP},
    {"temp", SamplingStage::kTemperature},
};

Result<SamplingStage> stage_by_name(std::string_view given) {
  std::string name(given);
  std::ranges::replace(name, '-', '_');
  const auto found = std::ranges::find(kStageNames, name, &StageName::name);
  if (found != std::end(kStageNames)) return found->stage;
  return invalid_argument("there is no sampler '{}'; there are: {}", printable(given, 32),
                          to_string(SamplingParams().order));
}

Status check_tokens(const SamplingParams& params, std::int32_t vocabulary,
                    std::string_view& wrong) {
  const auto check = [&](std::string_view field, TokenId token) -> Status {
    wrong = field;
    if (token >= 0 && token < vocabulary) return {};
    return invalid_argument("{} names token {}; the vocabulary has {}", field, token, vocabulary);
  };
  for (const auto& [token, bias] : params.logit_bias) {
    STRATA_TRY(check("logit_bias", token));
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      return invalid_argument("logit_bias of token {} is {}; it must be a number or -infinity",
                              token, bias);
  }
  for (const BreakerPart& part : params.dry_breakers) STRATA_TRY(check("dry_breakers", part.token));
  if (!std::ranges::is_sorted(params.dry_breakers))
    return invalid_argument("dry_breakers are not in ascending order");
  return {};
}

}  // namespace

std::span<const SamplingField> sampling_fields() { return kFields; }

Status SamplingParams::validate(std::int32_t vocabulary, std::string_view* wrong) const {
  std::string_view unused;
  std::string_view& at = wrong != nullptr ? *wrong : unused;
  for (const SamplingField& field : kFields) {
    at = field.name;
    const double value =
        std::visit([&](auto member) { return static_cast<double>(this->*member); }, field.member);
    if (!(value >= field.low && value <= field.high))
      return invalid_argument("{} is {}; it must lie between {} and {}", field.name, value,
                              field.low, field.high);
  }
  at = "mirostat";
  if (mirostat == 1) return invalid_argument("mirostat is 1; it must be 0 (off) or 2");
  at = "temperature";
  if (greedy() && std::ranges::find(order, SamplingStage::kTemperature) == order.end())
    return invalid_argument("temperature is 0, but the order of samplers leaves temperature out");
  return check_tokens(*this, vocabulary, at);
}

std::string_view to_string(SamplingStage stage) {
  return std::ranges::find(kStageNames, stage, &StageName::stage)->name;
}

std::string to_string(std::span<const SamplingStage> order) {
  std::string text;
  for (const SamplingStage stage : order) {
    if (!text.empty()) text += ';';
    text += to_string(stage);
  }
  return text;
}

Result<std::vector<SamplingStage>> parse_sampling_order(std::string_view text) {
  std::vector<SamplingStage> order;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find_first_of(";,", begin), text.size());
    STRATA_ASSIGN(const SamplingStage stage, stage_by_name(text.substr(begin, end - begin)));
    if (std::ranges::find(order, stage) != order.end())
      return invalid_argument("the order of samplers names {} twice", to_string(stage));
    order.push_back(stage);
    begin = end + 1;
  }
  return order;
}

}  // namespace strata
