// Kernels for every AArch64 processor.
#include "device/cpu/simd/neon.h"

#include "device/cpu/kernels/table.h"

namespace strata {

extern constinit const KernelTable kNeonKernels = make_kernel_table<Neon>("neon");

}  // namespace strata
