// What was measured of the machine, for the planner.
#pragma once

#include <optional>
#include <vector>

#include "base/units.h"

namespace strata {

struct HardwareProfile {
  Bytes memory_available = 0;   // RAM this process may use, control groups respected
  int physical_cores = 1;       // of which this process may use at least one hardware thread
  std::optional<double> quota;  // cores' worth of time the control groups allow it
  // The hardware threads it may use, by memory node.
  std::vector<std::vector<int>> nodes;
};

}  // namespace strata
