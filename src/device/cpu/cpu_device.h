// The processor as a device.
#pragma once

#include <memory>

#include "device/device.h"

namespace strata {

enum class Isa : std::uint8_t { kBest, kScalar, kAvx2, kAvxVnni, kAvx512 };

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

// The names --isa knows; nullopt for another.
std::vector<std::string> isa_names();
std::optional<Isa> isa_by_name(std::string_view name);

}  // namespace strata
