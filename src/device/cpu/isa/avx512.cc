// Kernels for AVX-512 with VNNI. As in isa/avx2.cc, every function but the table has internal
// linkage.
#include "device/cpu/simd/avx512.h"

#include "device/cpu/kernels/table.h"
#include "device/cpu/simd/avx2.h"

namespace strata {

extern constinit const KernelTable kAvx512Kernels = make_kernel_table<Avx2, Avx512>("avx512");

}  // namespace strata
