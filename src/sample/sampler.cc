#include "sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/math.h"

namespace strata {
namespace {

Status check_range(std::string_view field, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return invalid_argument("{} is {}; it must lie between {} and {}", field, value, low, high);
}

}  // namespace

Status SamplingParams::validate(std::int32_t vocabulary) const {
  STRATA_TRY(check_range("temperature", temperature, 0, 100));
  STRATA_TRY(check_range("top_k", top_k, 0, std::numeric_limits<std::int32_t>::max()));
  STRATA_TRY(check_range("top_p", top_p, 0, 1));
  STRATA_TRY(check_range("min_p", min_p, 0, 1));
  STRATA_TRY(check_range("repeat_penalty", repeat_penalty, 0.01, 100));
  STRATA_TRY(
      check_range("repeat_last_n", repeat_last_n, -1, std::numeric_limits<std::int32_t>::max()));
  STRATA_TRY(check_range("presence_penalty", presence_penalty, -100, 100));
  STRATA_TRY(check_range("frequency_penalty", frequency_penalty, -100, 100));
  for (const auto& [token, bias] : logit_bias) {
    if (token < 0 || token >= vocabulary)
      return invalid_argument("logit_bias names token {}; the vocabulary has {}", token,
                              vocabulary);
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity())
      return invalid_argument("logit_bias of token {} is {}; it must be a number or -infinity",
                              token, bias);
  }
  return {};
}

Status Sampler::gather(std::span<const float> logits) {
  candidates_.resize(logits.size());
  sorted_ = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == std::numeric_limits<float>::infinity())
      return make_error(StatusCode::kInternal,
                        "the logit of token {} is {}: the model's weights or its activations are "
                        "out of range",
                        i, logits[i]);
    candidates_[i] = {logits[i], static_cast<TokenId>(i)};
  }
  return {};
}

// Before anything is sorted: a candidate's index is its token.
void Sampler::penalize(const SamplingParams& params, std::span<const TokenId> history) {
  const bool active = params.repeat_penalty != 1.0f || params.presence_penalty != 0 ||
                      params.frequency_penalty != 0;
  if (!active) return;
  const std::size_t count =
      params.repeat_last_n < 0
          ? history.size()
          : std::min<std::size_t>(history.size(), static_cast<std::size_t>(params.repeat_last_n));
  recent_.assign(history.end() - static_cast<std::ptrdiff_t>(count), history.end());
  std::ranges::sort(recent_);
  for (auto first = recent_.begin(); first != recent_.end();) {
    const auto last = std::upper_bound(first, recent_.end(), *first);
    float& logit = candidates_[static_cast<std::size_t>(*first)].logit;
    logit = logit > 0 ? logit / params.repeat_penalty : logit * params.repeat_penalty;
    logit -= params.presence_penalty + params.frequency_penalty * static_cast<float>(last - first);
    first = last;
  }
}

// Orders the best candidates further, at least doubling how many; returns how many are in order.
std::size_t Sampler::sort_more(std::size_t sorted) {
  const std::size_t target = std::min(candidates_.size(), std::max<std::size_t>(64, sorted * 2));
  const auto begin = candidates_.begin();
  const auto from = begin + static_cast<std::ptrdiff_t>(sorted);
  const auto to = begin + static_cast<std::ptrdiff_t>(target);
  std::nth_element(from, to, candidates_.end());
  std::sort(from, to);
  return target;
}

void Sampler::keep_top_k(std::int32_t k) {
  const auto count = static_cast<std::size_t>(k);
  if (k == 0 || count >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(count);
  std::nth_element(candidates_.begin(), end, candidates_.end());
  candidates_.resize(count);
  std::sort(candidates_.begin(), candidates_.end());
  sorted_ = count;
}

void Sampler::keep_top_p(float p) {
  if (p >= 1.0f) return;
  const auto best = std::min_element(candidates_.begin(), candidates_.end())->logit;
  double total = 0;
  for (const Candidate& c : candidates_) total += exp_f64(double{c.logit} - best);
  double sum = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (i == sorted_) sorted_ = sort_more(sorted_);
    sum += exp_f64(double{candidates_[i].logit} - best);
    if (sum < double{p} * total) continue;
    candidates_.resize(i + 1);
    sorted_ = i + 1;
    return;
  }
}

void Sampler::keep_min_p(float p) {
  if (p <= 0) return;
  const auto best = std::min_element(candidates_.begin(), candidates_.end())->logit;
  const double lowest = best + log_f64(double{p});
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < lowest; });
}

TokenId Sampler::draw(float temperature, const RandomKey& key) {
  // The candidates are in token order or, where a filter worked, best first.
  const double best = std::min_element(candidates_.begin(), candidates_.end())->logit;
  weights_.clear();
  double total = 0;
  for (const Candidate& c : candidates_)
    total += weights_.emplace_back(exp_f64((double{c.logit} - best) / double{temperature}));
  double left = uniform(key) * total;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    left -= weights_[i];
    if (left < 0) return candidates_[i].token;
  }
  // Rounding may leave a trace behind the last; the last possible one takes it.
  std::size_t i = weights_.size() - 1;
  while (i > 0 && weights_[i] == 0) --i;
  return candidates_[i].token;
}

Result<TokenId> Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                                std::span<const TokenId> history, const RandomKey& key) {
  STRATA_TRY(gather(logits));
  penalize(params, history);
  for (const auto& [token, bias] : params.logit_bias)
    candidates_[static_cast<std::size_t>(token)].logit += bias;
  const auto best = std::min_element(candidates_.begin(), candidates_.end());
  if (best == candidates_.end() || std::isinf(best->logit))
    return invalid_argument("no token is possible: every logit is -infinity");
  if (params.temperature == 0) return best->token;
  keep_top_k(params.top_k);
  keep_top_p(params.top_p);
  keep_min_p(params.min_p);
  return draw(params.temperature, key);
}

std::vector<LogProbability> log_probabilities(std::span<const float> logits, TokenId token,
                                              std::int32_t top) {
  if (logits.empty()) return {};
  const double best = *std::ranges::max_element(logits);
  double total = 0;
  for (const float logit : logits) total += exp_f64(double{logit} - best);
  const double log_total = best + log_f64(total);
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
