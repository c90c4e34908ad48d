// The list of weight formats. A new format is its own file and one line here.
#pragma once

#include <array>

#include "formats/bf16.h"
#include "formats/f16.h"
#include "formats/f32.h"
#include "formats/format.h"
#include "formats/iq1_m.h"
#include "formats/iq1_s.h"
#include "formats/iq2_s.h"
#include "formats/iq2_xs.h"
#include "formats/iq2_xxs.h"
#include "formats/iq3_s.h"
#include "formats/iq3_xxs.h"
#include "formats/iq4_nl.h"
#include "formats/iq4_xs.h"
#include "formats/mxfp4.h"
#include "formats/nvfp4.h"
#include "formats/q2_k.h"
#include "formats/q3_k.h"
#include "formats/q4_0.h"
#include "formats/q4_1.h"
#include "formats/q4_k.h"
#include "formats/q5_0.h"
#include "formats/q5_1.h"
#include "formats/q5_k.h"
#include "formats/q6_k.h"
#include "formats/q8_0.h"
#include "formats/tq1_0.h"
#include "formats/tq2_0.h"

namespace strata {

template <class... F>
struct FormatList {};

using AllFormats = FormatList<F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K,
                              Q6_K, IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ4_NL,
                              IQ4_XS, TQ1_0, TQ2_0, MXFP4, NVFP4>;

template <class... F>
constexpr std::array<FormatId, sizeof...(F)> ids_of(FormatList<F...>) {
  return {F::kId...};
}

}  // namespace strata
