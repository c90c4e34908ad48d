// The list of weight formats. A new format is its own file and one line here.
#pragma once

#include "formats/f16.h"
#include "formats/format.h"
#include "formats/q4_0.h"
#include "formats/q4_k.h"

namespace strata {

template <class... F>
struct FormatList {};

using AllFormats = FormatList<F16, Q4_0, Q4_K>;

}  // namespace strata
