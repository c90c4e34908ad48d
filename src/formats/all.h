// The list of weight formats. A new format is its own file and one line here.
#pragma once

#include "formats/bf16.h"
#include "formats/f16.h"
#include "formats/f32.h"
#include "formats/format.h"
#include "formats/q4_0.h"
#include "formats/q4_1.h"
#include "formats/q4_k.h"
#include "formats/q5_0.h"
#include "formats/q5_1.h"
#include "formats/q5_k.h"
#include "formats/q6_k.h"
#include "formats/q8_0.h"

namespace strata {

template <class... F>
struct FormatList {};

using AllFormats = FormatList<F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K>;

}  // namespace strata
