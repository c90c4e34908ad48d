#include "sample/sampler.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>

#include "base/math.h"

namespace strata {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMostLogit = std::numeric_limits<float>::max();
constexpr double kLn2 = 0x1.62e42fefa39efp-1;

// In four interleaved parts, which need not wait for each other.
double sum_of(std::span<const double> values) {
  std::array<double, 4> parts{};
  std::size_t i = 0;
  for (; i + 4 <= values.size(); i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) parts[lane] += values[i + lane];
  for (; i < values.size(); ++i) parts[0] += values[i];
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

bool is_filter(SamplingStage stage) {
  return stage != SamplingStage::kPenalties && stage != SamplingStage::kDry &&
         stage != SamplingStage::kTemperature;
}

// Whether the best candidate is sure to survive a stage and to stay the best.
bool keeps_best(SamplingStage stage, const SamplingParams& params) {
  if (stage == SamplingStage::kTypicalP) return params.typical_p >= 1;
  if (stage == SamplingStage::kXtc) return params.xtc_probability <= 0;
  return is_filter(stage);
}

// The stages that have a say: at temperature 0 not those from where the best candidate is sure.
std::span<const SamplingStage> stages_to_run(const SamplingParams& params) {
  std::span<const SamplingStage> stages = params.order;
  if (!params.greedy()) return stages;
  const auto end = std::ranges::find(stages, SamplingStage::kTemperature);
  stages = stages.first(static_cast<std::size_t>(end - stages.begin()));
  while (!stages.empty() && keeps_best(stages.back(), params))
    stages = stages.first(stages.size() - 1);
  return stages;
}

// The last tokens of a history; -1: all.
std::span<const TokenId> last_tokens(std::span<const TokenId> history, std::int32_t count) {
  return count < 0 ? history
                   : history.last(std::min(history.size(), static_cast<std::size_t>(count)));
}

bool penalizes(const SamplingParams& params) {
  return params.repeat_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

bool is_idle(SamplingStage stage, const SamplingParams& params) {
  switch (stage) {
    case SamplingStage::kPenalties: return !penalizes(params);
    case SamplingStage::kDry: return params.dry_multiplier == 0;
    case SamplingStage::kTopNSigma: return params.top_n_sigma <= 0;
    case SamplingStage::kTopK: return params.top_k <= 0;
    case SamplingStage::kTypicalP: return params.typical_p >= 1;
    case SamplingStage::kTopP: return params.top_p >= 1;
    case SamplingStage::kMinP: return params.min_p <= 0;
    case SamplingStage::kXtc: return params.xtc_probability <= 0;
    case SamplingStage::kTemperature: return params.temperature == 1 && params.dynatemp_range == 0;
  }
  return false;
}

// How many of the largest logits decide: what top-k keeps where it comes first, and as many more as
// penalties may lower before it. Nothing where all logits have a say.
std::optional<std::size_t> deciding(const SamplingParams& params,
                                    std::span<const TokenId> history) {
  if (!params.logit_bias.empty() || params.mirostat != 0) return std::nullopt;
  std::size_t lowered = 0;
  for (const SamplingStage stage : stages_to_run(params)) {
    if (is_idle(stage, params)) continue;
    if (stage == SamplingStage::kTopK) return lowered + static_cast<std::size_t>(params.top_k);
    const bool lowers =
        params.repeat_penalty >= 1 && params.presence_penalty >= 0 && params.frequency_penalty >= 0;
    if (stage == SamplingStage::kDry)
      lowered += last_tokens(history, params.dry_penalty_last_n).size();
    else if (stage == SamplingStage::kPenalties && lowers)
      lowered += last_tokens(history, params.repeat_last_n).size();
    else
      return std::nullopt;
  }
  return params.greedy() ? std::optional(lowered + 1) : std::nullopt;
}

Status no_number(TokenId token, float logit) {
  return internal_error(
      "the logit of token {} is {}: the model's weights or its activations are out of range", token,
      logit);
}

}  // namespace

Status Sampler::gather(std::span<const float> logits) {
  candidates_.resize(logits.size());
  std::size_t count = 0;
  bool valid = true;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_[count] = {logits[i], static_cast<TokenId>(i)};
    valid &= logits[i] < kInfinity;  // false also for NaN
    count += logits[i] != -kInfinity;
  }
  candidates_.resize(count);
  if (valid) return {};
  const auto wrong = std::ranges::find_if(logits, [](float l) { return !(l < kInfinity); });
  return no_number(static_cast<TokenId>(wrong - logits.begin()), *wrong);
}

Status Sampler::gather_largest(std::span<const float> logits, std::size_t count) {
  constexpr std::size_t kBlock = 64;
  constexpr std::size_t kLanes = 16;
  const std::size_t blocks = logits.size() / kBlock;
  if (count * 2 > blocks) return gather(logits);
  maxima_.resize(blocks);
  std::array<std::uint32_t, kLanes> wrong{};
  for (std::size_t block = 0; block < blocks; ++block) {
    const float* const from = logits.data() + block * kBlock;
    std::array<float, kLanes> most;
    std::copy_n(from, kLanes, most.begin());
    for (std::size_t i = 0; i < kBlock; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const float logit = from[i + lane];
        most[lane] = logit > most[lane] ? logit : most[lane];
        wrong[lane] |= logit < kInfinity ? 0u : 1u;
      }
    maxima_[block] = *std::ranges::max_element(most);
  }
  const std::size_t rest = blocks * kBlock;
  for (const float logit : logits.subspan(rest)) wrong[0] |= logit < kInfinity ? 0u : 1u;
  if (std::ranges::count(wrong, 0u) != kLanes) return gather(logits);
  // As many blocks hold a logit of at least this.
  ranked_maxima_ = maxima_;
  const auto last = ranked_maxima_.begin() + static_cast<std::ptrdiff_t>(count - 1);
  std::ranges::nth_element(ranked_maxima_, last, std::greater<>());
  const float least = *last;
  candidates_.clear();
  const auto add = [&](std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i)
      if (logits[i] >= least && logits[i] != -kInfinity)
        candidates_.push_back({logits[i], static_cast<TokenId>(i)});
  };
  for (std::size_t block = 0; block < blocks; ++block)
    if (maxima_[block] >= least) add(block * kBlock, (block + 1) * kBlock);
  add(rest, logits.size());
  return {};
}

Status Sampler::gather_allowed(std::span<const float> logits,
                               std::span<const std::uint64_t> allowed) {
  candidates_.clear();
  const std::size_t words = std::min(allowed.size(), ceil_div<std::size_t>(logits.size(), 64));
  for (std::size_t word = 0; word < words; ++word) {
    for (std::uint64_t bits = allowed[word]; bits != 0; bits &= bits - 1) {
      const std::size_t i = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      if (i >= logits.size()) break;
      if (!(logits[i] < kInfinity)) return no_number(static_cast<TokenId>(i), logits[i]);
      if (logits[i] != -kInfinity) candidates_.push_back({logits[i], static_cast<TokenId>(i)});
    }
  }
  if (!candidates_.empty()) return {};
  return invalid_argument("no token is possible: the answer's constraint allows none");
}

Sampler::Candidate* Sampler::find(TokenId token) {
  const auto found = std::ranges::lower_bound(candidates_, token, {}, &Candidate::token);
  return found != candidates_.end() && found->token == token ? &*found : nullptr;
}

// Where the token is a candidate; logits stay finite.
template <typename Change>
void Sampler::change_logit(TokenId token, Change change) {
  if (Candidate* const c = find(token))
    c->logit = std::clamp(change(c->logit), -kMostLogit, kMostLogit);
}

void Sampler::add_bias(const SamplingParams& params) {
  bool forbids = false;
  for (const auto& [token, bias] : params.logit_bias) {
    forbids |= bias == -kInfinity;
    change_logit(token, [added = bias](float logit) { return logit + added; });
  }
  if (!forbids) return;
  for (const auto& [token, bias] : params.logit_bias)
    if (Candidate* const c = find(token); c != nullptr && bias == -kInfinity) c->logit = bias;
  std::erase_if(candidates_, [](const Candidate& c) { return c.logit == -kInfinity; });
}

void Sampler::penalize(const SamplingParams& params, std::span<const TokenId> history) {
  if (!penalizes(params)) return;
  const auto last = last_tokens(history, params.repeat_last_n);
  recent_.assign(last.begin(), last.end());
  std::ranges::sort(recent_);
  for (auto first = recent_.begin(); first != recent_.end();) {
    const auto end = std::upper_bound(first, recent_.end(), *first);
    const auto times = static_cast<float>(end - first);
    change_logit(*first, [&](float logit) {
      logit = logit > 0 ? logit / params.repeat_penalty : logit * params.repeat_penalty;
      return logit - (params.presence_penalty + params.frequency_penalty * times);
    });
    first = end;
  }
}

void Sampler::penalize_repetition(const SamplingParams& params, std::span<const TokenId> history) {
  if (params.dry_multiplier == 0) return;
  const auto allowed = static_cast<std::size_t>(params.dry_allowed_length);
  const auto last = last_tokens(history, params.dry_penalty_last_n);
  for (const auto& [token, length] : repetitions_.find(last, allowed, params.dry_breakers)) {
    const double power = pow_f64(params.dry_base, static_cast<double>(length - allowed));
    const double penalty = std::min<double>(params.dry_multiplier * power, kMostLogit);
    change_logit(token, [&](float logit) { return logit - static_cast<float>(penalty); });
  }
}

Sampler::Candidate Sampler::best() const {
  Candidate best = candidates_.front();
  for (const Candidate& c : candidates_)
    if (c.logit > best.logit) best = c;
  return best;
}

// Fills distances and weights; returns the weights' sum.
double Sampler::weigh() {
  const double largest = best().logit;
  distances_.resize(candidates_.size());
  weights_.resize(candidates_.size());
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    distances_[i] = largest - double{candidates_[i].logit};
    weights_[i] = exp_negative(-distances_[i]);
  }
  return sum_of(weights_);
}

// The expected distance. The surprise of a candidate is its distance + ln total, in nats, so the
// entropy is the mean distance + ln total. REQUIRES: weighed.
double Sampler::mean_distance(double total) const {
  double sum = 0;
  for (std::size_t i = 0; i < weights_.size(); ++i) sum += weights_[i] * distances_[i];
  return sum / total;
}

void Sampler::keep_best() { candidates_ = {best()}; }

// Keeps the candidates of the smallest distances, of equal ones the first, until their weights
// reach `mass` and they are `least` many. Only distances near that border are sorted.
// REQUIRES: weighed; the distances may be of another kind.
void Sampler::keep_nearest(double mass, std::size_t least) {
  constexpr double kBucketsPerNat = 16;
  constexpr std::size_t kBuckets = 512;
  struct Share {
    double mass = 0;
    std::size_t count = 0;
    Share operator+(const Share& other) const { return {mass + other.mass, count + other.count}; }
  };
  const auto bucket_of = [&](std::size_t i) {
    const double bucket = std::min(distances_[i] * kBucketsPerNat, kBuckets - 1.0);
    return static_cast<std::size_t>(static_cast<int>(bucket));
  };
  const auto reached = [&](const Share& share) {
    return share.count >= std::max<std::size_t>(least, 1) && share.mass >= mass;
  };
  std::array<Share, kBuckets> buckets{};
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    buckets[bucket_of(i)] = buckets[bucket_of(i)] + Share{weights_[i], 1};
  Share kept;
  std::size_t border = 0;
  while (border < kBuckets && !reached(kept + buckets[border])) kept = kept + buckets[border++];
  if (border == kBuckets) return;
  ranks_.clear();
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (bucket_of(i) == border) ranks_.push_back(i);
  std::ranges::stable_sort(ranks_, {}, [&](std::size_t i) { return distances_[i]; });
  // The bucket's sum in another order may have been larger by a rounding.
  std::size_t rank = 0;
  for (; rank + 1 < ranks_.size(); ++rank) {
    kept = kept + Share{weights_[ranks_[rank]], 1};
    if (reached(kept)) break;
  }
  const std::size_t last = ranks_[rank];
  const double furthest = distances_[last];
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (distances_[i] < furthest || (distances_[i] == furthest && i <= last))
      candidates_[count++] = candidates_[i];
  candidates_.resize(count);
}

// Top-nσ (Tang, Liu, Xu, Wei, "Top-nσ: Not All Logits Are You Need", 2024).
void Sampler::keep_top_n_sigma(float n) {
  if (n <= 0) return;
  const auto count = static_cast<double>(candidates_.size());
  double sum = 0;
  for (const Candidate& c : candidates_) sum += c.logit;
  const double mean = sum / count;
  double squares = 0;
  for (const Candidate& c : candidates_) squares += (c.logit - mean) * (c.logit - mean);
  const double least = best().logit - double{n} * std::sqrt(squares / count);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
}

void Sampler::keep_top_k(std::int32_t k) {
  const auto count = static_cast<std::size_t>(k);
  if (k == 0 || count >= candidates_.size()) return;
  constexpr std::size_t kFewest = 512;  // of which a heap is cheaper than a copy of all
  if (count <= kFewest) {
    ranked_.resize(count);
    std::partial_sort_copy(candidates_.begin(), candidates_.end(), ranked_.begin(), ranked_.end());
  } else {
    ranked_ = candidates_;
    std::nth_element(ranked_.begin(), ranked_.begin() + (k - 1), ranked_.end());
  }
  const Candidate last = ranked_[count - 1];
  std::erase_if(candidates_, [&](const Candidate& c) { return last < c; });
}

// Meister, Pimentel, Wiher, Cotterell, "Locally Typical Sampling", 2023.
void Sampler::keep_typical(const SamplingParams& params) {
  if (params.typical_p >= 1) return;
  const double total = weigh();
  const double mean = mean_distance(total);
  for (double& distance : distances_) distance = std::fabs(distance - mean);
  keep_nearest(double{params.typical_p} * total, static_cast<std::size_t>(params.min_keep));
}

void Sampler::keep_top_p(const SamplingParams& params) {
  if (params.top_p >= 1) return;
  const double total = weigh();
  keep_nearest(double{params.top_p} * total, static_cast<std::size_t>(params.min_keep));
}

void Sampler::keep_min_p(const SamplingParams& params) {
  if (params.min_p <= 0) return;
  const double least = best().logit + log_f64(double{params.min_p});
  const auto likely =
      std::ranges::count_if(candidates_, [&](const Candidate& c) { return c.logit >= least; });
  if (likely < params.min_keep) return keep_top_k(params.min_keep);
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < least; });
}

// "Exclude top choices": the least probable of the probable tokens becomes the best.
void Sampler::drop_top_choices(const SamplingParams& params, const RandomKey& key) {
  if (uniform(key, RandomUse::kXtc) >= double{params.xtc_probability}) return;
  const double least = double{params.xtc_threshold} * weigh();
  std::size_t probable = 0;
  Candidate last = candidates_.front();
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (weights_[i] < least) continue;
    if (probable == 0 || last < candidates_[i]) last = candidates_[i];
    ++probable;
  }
  if (probable < 2) return;
  if (candidates_.size() - (probable - 1) < static_cast<std::size_t>(params.min_keep)) return;
  std::erase_if(candidates_, [&](const Candidate& c) { return c < last; });
}

void Sampler::apply_temperature(const SamplingParams& params) {
  double temperature = double{params.temperature};
  if (params.dynatemp_range > 0 && candidates_.size() > 1) {
    const double range = double{params.dynatemp_range};
    const double low = std::max(0.0, temperature - range);
    const double total = weigh();
    const double most = log_f64(static_cast<double>(candidates_.size()));
    const double share = (mean_distance(total) + log_f64(total)) / most;
    const double exponent = double{params.dynatemp_exponent};
    const double power = share > 0 ? pow_f64(share, exponent) : exponent == 0 ? 1.0 : 0.0;
    temperature = low + (temperature + range - low) * power;
  }
  if (temperature <= 0) return keep_best();
  if (temperature == 1) return;
  for (Candidate& c : candidates_) {
    const double logit = double{c.logit} / temperature;
    c.logit = static_cast<float>(std::clamp<double>(logit, -kMostLogit, kMostLogit));
  }
}

// At least the best.
void Sampler::keep_up_to_surprise(double bits) {
  const double furthest = bits * kLn2 - log_f64(weigh());
  if (furthest < 0) return keep_best();
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i)
    if (distances_[i] <= furthest) candidates_[count++] = candidates_[i];
  candidates_.resize(count);
}

void Sampler::run(SamplingStage stage, const SamplingParams& params,
                  std::span<const TokenId> history, const RandomKey& key) {
  switch (stage) {
    case SamplingStage::kPenalties: return penalize(params, history);
    case SamplingStage::kDry: return penalize_repetition(params, history);
    case SamplingStage::kTopNSigma: return keep_top_n_sigma(params.top_n_sigma);
    case SamplingStage::kTopK: return keep_top_k(params.top_k);
    case SamplingStage::kTypicalP: return keep_typical(params);
    case SamplingStage::kTopP: return keep_top_p(params);
    case SamplingStage::kMinP: return keep_min_p(params);
    case SamplingStage::kXtc: return drop_top_choices(params, key);
    case SamplingStage::kTemperature: return apply_temperature(params);
  }
}

// The candidate's index. REQUIRES: weighed.
std::size_t Sampler::draw(double total, const RandomKey& key) const {
  double left = uniform(key) * total;
  for (std::size_t i = 0; i + 1 < weights_.size(); ++i) {
    left -= weights_[i];
    if (left < 0) return i;
  }
  return weights_.size() - 1;  // rounding may leave a trace behind it
}

Result<TokenId> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                std::span<const TokenId> history, const RandomKey& key,
                                SamplerState& state, std::span<const std::uint64_t> allowed) {
  if (!allowed.empty()) {
    STRATA_TRY(gather_allowed(logits, allowed));
  } else if (const auto count = deciding(params, history)) {
    STRATA_TRY(gather_largest(logits, *count));
  } else {
    STRATA_TRY(gather(logits));
  }
  add_bias(params);
  if (candidates_.empty())
    return invalid_argument("no token is possible: every logit is -infinity{}",
                            params.logit_bias.empty() ? "" : ", or is made so by logit_bias");
  for (const SamplingStage stage : stages_to_run(params))
    if (params.mirostat == 0 || !is_filter(stage)) run(stage, params, history, key);
  if (params.greedy()) return best().token;
  const double mu = state.mirostat_mu.value_or(2 * double{params.mirostat_tau});
  if (params.mirostat != 0) keep_up_to_surprise(mu);
  const double total = weigh();
  const std::size_t chosen = draw(total, key);
  if (params.mirostat != 0) {
    const double surprise = (distances_[chosen] + log_f64(total)) / kLn2;
    const double error = surprise - double{params.mirostat_tau};
    state.mirostat_mu = mu - double{params.mirostat_eta} * error;
  }
  return candidates_[chosen].token;
}

std::vector<LogProbability> log_probabilities(std::span<const float> logits, TokenId token,
                                              std::int32_t top) {
  if (logits.empty()) return {};
  const double best = *std::ranges::max_element(logits);
  std::vector<double> weights(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i)
    weights[i] = exp_negative(double{logits[i]} - best);
  const double log_total = best + log_f64(sum_of(weights));
  const auto entry = [&](TokenId id) {
    return LogProbability{id, double{logits[static_cast<std::size_t>(id)]} - log_total};
  };
  std::vector<LogProbability> out = {entry(token)};
  std::vector<TokenId> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<TokenId>(i);
  const auto count =
      std::min<std::size_t>(order.size(), static_cast<std::size_t>(std::max(0, top)));
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](TokenId a, TokenId b) {
                      const float x = logits[static_cast<std::size_t>(a)];
                      const float y = logits[static_cast<std::size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (std::size_t i = 0; i < count; ++i) out.push_back(entry(order[i]));
  return out;
}

}  // namespace strata
