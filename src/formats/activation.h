// Turning f32 activations into 8-bit blocks: the reference every device's kernel matches bit for
// bit.
//
// Per block: scale = largest |x| / 127, q = x * (127 / largest |x|) rounded to nearest even, so
// |q| <= 127 for finite input. Where a block holds an infinity or a not-a-number, its scale is one
// too, and so is every product with it. Where 127 / largest |x| overflows (|x| < 4e-37), q is 0.
#pragma once

#include <cstdint>

#include "formats/format.h"

namespace strata {

// REQUIRES: n is a multiple of 32; `out` holds n / 32 blocks.
void quantize_q8x32(const float* x, std::int64_t n, Q8Block32* out);

// REQUIRES: n is a multiple of 256; `out` holds n / 256 blocks.
void quantize_q8x256(const float* x, std::int64_t n, Q8Block256* out);

}  // namespace strata
