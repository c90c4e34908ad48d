// What was measured of the machine, for the planner.
#pragma once

#include "base/units.h"

namespace strata {

struct HardwareProfile {
  Bytes memory_available = 0;  // RAM this process may use, control groups respected
  int physical_cores = 1;      // within the process's CPU set and quota
};

}  // namespace strata
