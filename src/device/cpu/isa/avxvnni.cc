// Kernels for AVX2 with AVX-VNNI. As in isa/avx2.cc, every function but the table has internal
// linkage.
#include "device/cpu/simd/avxvnni.h"

#include "device/cpu/kernels/table.h"

namespace strata {

extern constinit const KernelTable kAvxVnniKernels = make_kernel_table<Avx2, AvxVnni>("avxvnni");

}  // namespace strata
