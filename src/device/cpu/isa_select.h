// Picks the kernels for the processor the program runs on.
#pragma once

#include "base/status.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/kernels.h"

namespace strata {

Result<const KernelTable*> select_kernels(Isa isa);

// The kernels of `tiles` that are there, and for the rest those of `other`.
KernelTable with_tiles(const KernelTable& tiles, const KernelTable& other);

// The ISAs this processor can run, slowest first.
std::vector<Isa> runnable_isas();

}  // namespace strata
