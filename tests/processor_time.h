// What a test has cost so far.
#pragma once

#include <ctime>

namespace strata::testing {

// Counts from its making, all threads together. A busy machine stretches a test, but not this.
class ProcessorTime {
 public:
  double seconds() const { return static_cast<double>(std::clock() - start_) / CLOCKS_PER_SEC; }

 private:
  std::clock_t start_ = std::clock();
};

}  // namespace strata::testing
