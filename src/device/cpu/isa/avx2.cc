// Kernels for AVX2 with FMA and F16C. Compiled with those flags, so every function but the table
// has internal linkage: the vocabulary lives in an anonymous namespace.
#include "device/cpu/simd/avx2.h"

#include "device/cpu/kernels/table.h"

namespace strata {

extern constinit const KernelTable kAvx2Kernels = make_kernel_table<Avx2>("avx2");

}  // namespace strata
