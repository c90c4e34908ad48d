#include "engine/mask_pace.h"

#include <algorithm>

namespace strata {
namespace {

constexpr double kMaskShare = 0.25;  // of a step's time
constexpr double kAlone = 0.25;      // seconds where no step waits: a request may come meanwhile

}  // namespace

void MaskPace::make_one(const Late& late) {
  const double start = now_();
  // Where it fails, the answer's draw says so.
  (void)late.constraint->allowed();
  const double seconds = now_() - start;
  if (seconds > MaskCost::kCheap) allowance_ -= seconds;
  *late.cost = {std::max(seconds, late.cost->seconds / 2), 0};
}

void MaskPace::make(std::vector<Late>& late, std::optional<double> step) {
  allowance_ = step ? std::min(allowance_ + kMaskShare * *step, kMaskShare * *step) : kAlone;
  const auto ratio = [](const Late& each) { return each.cost->seconds / (each.cost->waited + 1); };
  std::ranges::sort(late, {}, ratio);
  bool must = step && *step == 0;
  std::erase_if(late, [&](const Late& each) {
    const bool makes = allowance_ > 0 || each.cost->seconds <= MaskCost::kCheap || must;
    if (makes) {
      make_one(each);
      must = false;
    } else {
      ++each.cost->waited;
    }
    return makes;
  });
  if (!step) allowance_ = std::max(allowance_, 0.0);  // nobody was held up
}

}  // namespace strata
