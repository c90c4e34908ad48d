// Runs another program and takes what it writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace strata::apps {

struct ChildOutput {
  std::string text;
  std::string errors;  // the end of what it wrote to standard error, at most 64 KiB
};

enum class ExitCodes : std::uint8_t { kZero, kAny };

// What `arguments`, the first of them a path, wrote. Fails, saying the last that it wrote to
// standard error, where it cannot be started, ends by a signal or with a code other than `allowed`,
// takes longer than `limit`, or writes more than 4 MiB. Whatever it started itself is killed when
// it ends, and all of them when this program does, however that comes about.
Result<ChildOutput> run_child(const std::vector<std::string>& arguments,
                              std::chrono::milliseconds limit,
                              ExitCodes allowed = ExitCodes::kZero);

}  // namespace strata::apps
