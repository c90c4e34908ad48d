// The processor as a device.
#pragma once

#include <memory>

#include "device/device.h"

namespace strata {

enum class Isa : std::uint8_t {
  kBest,
  kScalar,
  kAvx2,
  kAvxVnni,
  kAvx512,
  kAvx512Amx,
  kNeon,
  kNeonDotprod,
  kNeonI8mm
};

struct CpuOptions {
  int threads = 1;
  Isa isa = Isa::kBest;
  // Keeps every activation in f32 instead of 8 bits: slower, and the measure for the fast mode.
  bool reference = false;
  // By thread, the processors it keeps to while it computes: those of a memory node, neighbours the
  // same. Empty: all may run anywhere.
  std::vector<std::vector<int>> processors = {};
};

// Fails with kUnsupported when the processor lacks the ISA asked for.
Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options);

// "best" and the names of the ISAs, whether this processor runs them or not.
std::vector<std::string> isa_names();

// nullopt for a name that is none of these.
std::optional<Isa> isa_by_name(std::string_view name);

}  // namespace strata
