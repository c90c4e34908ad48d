// Kernels for any processor: the reference for every other ISA.
#include "device/cpu/simd/scalar.h"

#include "device/cpu/kernels/table.h"

namespace strata {

extern constinit const KernelTable kScalarKernels = make_kernel_table<Scalar>("scalar");

}  // namespace strata
