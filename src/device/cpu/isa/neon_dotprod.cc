// Kernels for AArch64 with dot products of bytes.
#include "device/cpu/simd/neon_dotprod.h"

#include "device/cpu/kernels/table.h"

namespace strata {

extern constinit const KernelTable kNeonDotprodKernels =
    make_kernel_table<NeonDotprod>("neon_dotprod");

}  // namespace strata
