#include "device/cpu/isa_select.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>

namespace strata {
namespace {

// Best first, then slowest first.
constexpr std::pair<std::string_view, Isa> kNames[] = {{"best", Isa::kBest},
                                                       {"scalar", Isa::kScalar},
                                                       {"avx2", Isa::kAvx2},
                                                       {"avxvnni", Isa::kAvxVnni},
                                                       {"avx512", Isa::kAvx512}};

#if defined(__x86_64__)
// Half-precision conversion: leaf 1, ECX bit 29. Not every compiler's builtin knows its name.
bool has_f16c() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && ((ecx >> 29) & 1u) != 0;
}

// The builtins ask whether the system saves the registers, too.
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
}
// Leaf 7, subleaf 1, EAX bit 4.
bool has_avxvnni() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0 && ((eax >> 4) & 1u) != 0;
}
bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}
#endif

}  // namespace

std::vector<Isa> runnable_isas() {
  std::vector<Isa> isas = {Isa::kScalar};
#if defined(__x86_64__)
  if (has_avx2()) isas.push_back(Isa::kAvx2);
  if (has_avx2() && has_avxvnni()) isas.push_back(Isa::kAvxVnni);
  if (has_avx2() && has_avx512()) isas.push_back(Isa::kAvx512);
#endif
  return isas;
}

Result<const KernelTable*> select_kernels(Isa isa) {
  const auto runnable = runnable_isas();
  if (isa == Isa::kBest) isa = runnable.back();
  if (std::ranges::find(runnable, isa) == runnable.end()) {
    const auto* asked = std::ranges::find(kNames, isa, &std::pair<std::string_view, Isa>::second);
    return unsupported("this processor cannot run the {} kernels; choose --isa best", asked->first);
  }
#if defined(__x86_64__)
  if (isa == Isa::kAvx2) return &kAvx2Kernels;
  if (isa == Isa::kAvxVnni) return &kAvxVnniKernels;
  if (isa == Isa::kAvx512) return &kAvx512Kernels;
#endif
  return &kScalarKernels;
}

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const auto& [name, isa] : kNames) names.emplace_back(name);
  return names;
}

std::optional<Isa> isa_by_name(std::string_view name) {
  for (const auto& [known, isa] : kNames)
    if (known == name) return isa;
  return std::nullopt;
}

}  // namespace strata
