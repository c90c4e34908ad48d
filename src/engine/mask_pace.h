// MaskPace: which masks of constrained answers are made before a step. Masks of some grammars cost
// as much as a step, so that many of these would hold up everybody else: together they get a share
// of the time, and an answer whose mask is not made sits the step out.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "base/units.h"
#include "sample/constraint.h"

namespace strata {

// What is known of the masks of one answer, in seconds.
struct MaskCost {
  // A mask that is expected to take no more waits for nobody.
  static constexpr double kCheap = 1e-4;
  double seconds = 2 * kCheap;  // that the next one is expected to take; one cheap mask is enough
  int waited = 0;               // steps sat out for it
};

// Cheap masks go first, and the longer one waits the earlier (highest response ratio next, after
// Brinch Hansen, 1971). Not thread-safe.
class MaskPace {
 public:
  using Seconds = std::function<double()>;  // a clock
  explicit MaskPace(Seconds now) : now_(std::move(now)) {}

  // An answer whose mask is not ready.
  struct Late {
    SequenceId sequence;
    Constraint* constraint;
    MaskCost* cost;
  };

  // Makes masks, and leaves in `late` those that must wait. `step`: the last step's seconds, of
  // which masks get a share; with 0 they get one mask at least. Nothing: no step waits for them,
  // and they get a quarter of a second.
  void make(std::vector<Late>& late, std::optional<double> step);

 private:
  void make_one(const Late& late);

  Seconds now_;
  double allowance_ = 0;  // seconds; below 0 where a mask took longer than its step had left
};

}  // namespace strata
