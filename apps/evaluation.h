// How well rows of logits predict a text, and how far they lie from other rows for the same text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"

namespace strata::apps {

// The mean of independent samples, with the standard error of the mean.
class Mean {
 public:
  void add(double x) {
    ++count_;
    sum_ += x;
    squares_ += x * x;
  }
  std::int64_t count() const { return count_; }
  double value() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }
  double error() const;

 private:
  std::int64_t count_ = 0;
  double sum_ = 0;
  double squares_ = 0;
};

// A row of logits with what turns them into log-probabilities.
struct ScoredRow {
  std::span<const float> logits;
  double log_total = 0;  // ln sum exp(logit)
  TokenId best = 0;      // the first of the largest

  explicit ScoredRow(std::span<const float> row);  // REQUIRES: not empty
  double log_probability(TokenId token) const {
    return double{logits[static_cast<std::size_t>(token)]} - log_total;
  }
};

// sum of p * ln(p / q) in nats over the tokens of `p`. REQUIRES: rows of one vocabulary.
double kl_divergence(const ScoredRow& p, const ScoredRow& q);

// Perplexity is exp(mean negative log-likelihood); its error follows to first order.
class PerplexityScore {
 public:
  void add(double log_probability) { losses_.add(-log_probability); }
  const Mean& losses() const { return losses_; }
  double value() const;
  double error() const { return losses_.error() * value(); }

 private:
  Mean losses_;
};

class DivergenceScore {
 public:
  // `base`: the distribution that counts as true.
  void add(const ScoredRow& base, const ScoredRow& row);

  const Mean& mean() const { return mean_; }
  // The smallest value that at least this part of all samples does not exceed, part in (0, 1].
  double quantile(double part) const;
  double largest() const { return quantile(1); }
  // The part of rows whose best token is the base's.
  const Mean& agreement() const { return agreement_; }

 private:
  Mean mean_;
  Mean agreement_;
  std::vector<double> samples_;
};

}  // namespace strata::apps
