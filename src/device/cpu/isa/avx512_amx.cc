// Matrix products in tiles of AMX, beside the kernels for AVX-512. As in isa/avx2.cc, every
// function but the table has internal linkage.
#include "device/cpu/simd/avx512_amx.h"

#include "device/cpu/kernels/tile_table.h"

namespace strata {

extern constinit const KernelTable kAvx512AmxKernels =
    make_tile_table<Avx512Amx, kAvx512Kernels>("avx512_amx");

}  // namespace strata
