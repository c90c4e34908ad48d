#include "engine/step_pace.h"

#include <algorithm>
#include <cmath>

namespace strata {
namespace {

constexpr std::int32_t kLeastRows = 8;
constexpr int kMixedSteps = 64;   // after so many, the generating sequences are timed alone again
constexpr double kShare = 0.9;    // of the time that prompts may take: steps vary
constexpr double kNewest = 0.25;  // weight of the newest step in an average
constexpr double kLonger = 0.03;  // the same of one that took longer: others may have held it up
constexpr double kOutlier = 3;    // a step that took so much longer than usual counts as this

double average(double before, double newest, double longer = kNewest) {
  if (before == 0) return newest;
  const double weight = newest > before ? longer : kNewest;
  return before + weight * (std::min(newest, kOutlier * before) - before);
}

}  // namespace

// Four for each doubling.
std::size_t StepPace::bucket(std::int32_t generating) {
  return static_cast<std::size_t>(4 * std::log2(static_cast<double>(generating)));
}

std::int32_t StepPace::prompt_rows(std::int32_t generating, std::int32_t budget) const {
  if (slowdown_ <= 0 || generating == 0) return budget;
  const std::size_t at = bucket(generating);
  if (at >= alone_.size() || alone_[at].seconds == 0 || alone_[at].mixed >= kMixedSteps) return 0;
  const std::int32_t least = std::min(kLeastRows, budget);
  if (row_seconds_ == 0) return least;
  const double rows = kShare * (slowdown_ - 1) * alone_[at].seconds / row_seconds_;
  return std::max(least, static_cast<std::int32_t>(std::min<double>(rows, budget)));
}

void StepPace::observe(std::int32_t generating, std::int32_t prompt_rows, double seconds) {
  if (generating == 0) {
    if (prompt_rows > 0 && row_seconds_ == 0) row_seconds_ = seconds / prompt_rows;
    return;
  }
  alone_.resize(std::max(alone_.size(), bucket(generating) + 1));
  Alone& alone = alone_[bucket(generating)];
  if (prompt_rows == 0) {
    alone = {average(alone.seconds, seconds, kLonger), 0};
  } else if (alone.seconds > 0) {
    ++alone.mixed;
    const double added = std::max(0.0, seconds - alone.seconds) / prompt_rows;
    row_seconds_ = average(row_seconds_, added);
  }
}

}  // namespace strata
