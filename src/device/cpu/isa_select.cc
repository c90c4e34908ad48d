#include "device/cpu/isa_select.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

namespace strata {

#if defined(__x86_64__)
namespace {

// Half-precision conversion: leaf 1, ECX bit 29. Not every compiler's builtin knows its name.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && ((ecx >> 29) & 1u) != 0;
}

}  // namespace
#endif

std::vector<Isa> runnable_isas() {
  std::vector<Isa> isas = {Isa::kScalar};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
    isas.push_back(Isa::kAvx2);
#endif
  return isas;
}

Result<const KernelTable*> select_kernels(Isa isa) {
  const auto runnable = runnable_isas();
  if (isa == Isa::kBest) isa = runnable.back();
  if (std::ranges::find(runnable, isa) == runnable.end())
    return unsupported("this processor cannot run the AVX2 kernels; choose --isa scalar or best");
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return &kAvx2Kernels;
#endif
  return &kScalarKernels;
}

std::optional<Isa> isa_by_name(std::string_view name) {
  if (name == "best") return Isa::kBest;
  if (name == "scalar") return Isa::kScalar;
  if (name == "avx2") return Isa::kAvx2;
  return std::nullopt;
}

}  // namespace strata
