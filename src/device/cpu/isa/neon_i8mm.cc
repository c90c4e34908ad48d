// Kernels for AArch64 with dot and matrix products of bytes.
#include "device/cpu/simd/neon_i8mm.h"

#include "device/cpu/kernels/table.h"

namespace strata {

extern constinit const KernelTable kNeonI8mmKernels = make_kernel_table<NeonI8mm>("neon_i8mm");

}  // namespace strata
