// Which values an operation reads and writes.
#pragma once

#include <vector>

#include "graph/op.h"

namespace strata {

struct OpAccess {
  std::vector<ValueId> reads;
  std::vector<ValueId> writes;
};

OpAccess op_access(const Op& op);

}  // namespace strata
