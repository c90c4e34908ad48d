#include "evaluation.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace strata::apps {

double Mean::error() const {
  if (count_ < 2) return 0;
  const double n = static_cast<double>(count_);
  const double variance = std::max(0.0, squares_ / n - value() * value());
  return std::sqrt(variance / (n - 1));
}

ScoredRow::ScoredRow(std::span<const float> row) : logits(row) {
  const auto top = std::ranges::max_element(row);
  best = static_cast<TokenId>(top - row.begin());
  double total = 0;
  for (const float logit : row) total += exp_f64(double{logit} - double{*top});
  log_total = double{*top} + log_f64(total);
}

double kl_divergence(const ScoredRow& p, const ScoredRow& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.logits.size(); ++i) {
    const double log_p = double{p.logits[i]} - p.log_total;
    sum += exp_f64(log_p) * (log_p - (double{q.logits[i]} - q.log_total));
  }
  return std::max(sum, 0.0);  // rounding may leave a trace below zero
}

double PerplexityScore::value() const { return exp_f64(losses_.value()); }

void DivergenceScore::add(const ScoredRow& base, const ScoredRow& row) {
  samples_.push_back(kl_divergence(base, row));
  mean_.add(samples_.back());
  agreement_.add(base.best == row.best ? 1 : 0);
}

double DivergenceScore::quantile(double part) const {
  if (samples_.empty()) return 0;
  std::vector<double> sorted = samples_;
  const double rank = std::ceil(part * static_cast<double>(sorted.size())) - 1;
  const auto at =
      static_cast<std::ptrdiff_t>(std::clamp(rank, 0.0, static_cast<double>(sorted.size() - 1)));
  std::ranges::nth_element(sorted, sorted.begin() + at);
  return sorted[static_cast<std::size_t>(at)];
}

}  // namespace strata::apps
