#include "device/cpu/isa_select.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace strata {
namespace {

// Best first, then those of each machine, slowest first.
constexpr std::pair<std::string_view, Isa> kIsas[] = {
    {"best", Isa::kBest},          {"scalar", Isa::kScalar},
    {"avx2", Isa::kAvx2},          {"avxvnni", Isa::kAvxVnni},
    {"avx512", Isa::kAvx512},      {"avx512_amx", Isa::kAvx512Amx},
    {"neon", Isa::kNeon},          {"neon_dotprod", Isa::kNeonDotprod},
    {"neon_i8mm", Isa::kNeonI8mm},
};

std::string_view name_of(Isa isa) {
  return std::ranges::find(kIsas, isa, [](const auto& entry) { return entry.second; })->first;
}

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

// Tiles are large, so Linux saves them for those processes alone that have asked it to.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool allowed = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return allowed;
#else
  return false;
#endif
}
// Leaf 7, EDX bits 24 and 25: tiles, and their products of bytes. Leaf 1, ECX bit 27: XCR0 can be
// read, whose bits 17 and 18 say that the system saves tiles.
bool has_amx() {
  constexpr unsigned kTiles = 3u << 24, kReadable = 1u << 27, kSaved = 3u << 17;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 || (edx & kTiles) != kTiles)
    return false;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & kReadable) == 0) return false;
  asm("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return (eax & kSaved) == kSaved && may_use_tiles();
}

const KernelTable* amx_kernels() {
  static const KernelTable kernels = with_tiles(kAvx512AmxKernels, kAvx512Kernels);
  return &kernels;
}
#elif defined(__aarch64__) && defined(__linux__)
bool has_dotprod() { return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0; }
bool has_i8mm() { return (getauxval(AT_HWCAP2) & HWCAP2_I8MM) != 0; }
#elif defined(__aarch64__) && defined(__APPLE__)
bool has_feature(const char* name) {
  int value = 0;
  std::size_t size = sizeof value;
  return sysctlbyname(name, &value, &size, nullptr, 0) == 0 && value != 0;
}
bool has_dotprod() { return has_feature("hw.optional.arm.FEAT_DotProd"); }
bool has_i8mm() { return has_feature("hw.optional.arm.FEAT_I8MM"); }
#elif defined(__aarch64__)
bool has_dotprod() { return false; }
bool has_i8mm() { return false; }
#endif

// REQUIRES: the processor runs `isa`.
const KernelTable* kernels_of(Isa isa) {
  switch (isa) {
#if defined(__x86_64__)
    case Isa::kAvx2: return &kAvx2Kernels;
    case Isa::kAvxVnni: return &kAvxVnniKernels;
    case Isa::kAvx512: return &kAvx512Kernels;
    case Isa::kAvx512Amx: return amx_kernels();
#elif defined(__aarch64__)
    case Isa::kNeon: return &kNeonKernels;
    case Isa::kNeonDotprod: return &kNeonDotprodKernels;
    case Isa::kNeonI8mm: return &kNeonI8mmKernels;
#endif
    default: return &kScalarKernels;
  }
}

}  // namespace

KernelTable with_tiles(const KernelTable& tiles, const KernelTable& other) {
  KernelTable table = other;
  table.name = tiles.name;
  table.peak_int8 = tiles.peak_int8;
  for (std::size_t id = 0; id < kMaxFormats; ++id) {
    if (tiles.matmul[id] == nullptr) continue;
    table.matmul[id] = tiles.matmul[id];
    table.matmul_peak[id] = tiles.matmul_peak[id];
  }
  return table;
}

std::vector<Isa> runnable_isas() {
  std::vector<Isa> isas = {Isa::kScalar};
#if defined(__x86_64__)
  if (has_avx2()) isas.push_back(Isa::kAvx2);
  if (has_avx2() && has_avxvnni()) isas.push_back(Isa::kAvxVnni);
  if (has_avx2() && has_avx512()) isas.push_back(Isa::kAvx512);
  if (has_avx2() && has_avx512() && has_amx()) isas.push_back(Isa::kAvx512Amx);
#elif defined(__aarch64__)
  isas.push_back(Isa::kNeon);
  if (has_dotprod()) isas.push_back(Isa::kNeonDotprod);
  if (has_dotprod() && has_i8mm()) isas.push_back(Isa::kNeonI8mm);
#endif
  return isas;
}

Result<const KernelTable*> select_kernels(Isa isa) {
  const auto runnable = runnable_isas();
  if (isa == Isa::kBest) isa = runnable.back();
  if (std::ranges::find(runnable, isa) == runnable.end()) {
    std::vector<std::string_view> names;
    for (const Isa other : runnable) names.push_back(name_of(other));
    return unsupported("this processor cannot run the {} kernels; choose --isa best or one of: {}",
                       name_of(isa), fmt::join(names, ", "));
  }
  return kernels_of(isa);
}

std::vector<std::string> isa_names() {
  std::vector<std::string> names;
  for (const auto& [name, isa] : kIsas) names.emplace_back(name);
  return names;
}

std::optional<Isa> isa_by_name(std::string_view name) {
  for (const auto& [known, isa] : kIsas)
    if (known == name) return isa;
  return std::nullopt;
}

}  // namespace strata
