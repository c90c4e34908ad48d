// Times as protocols write them.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <string>

namespace strata::serve {

// "2026-03-14T15:09:26.123456789Z"
inline std::string rfc3339(std::chrono::system_clock::time_point time) {
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(time - whole).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:09}Z",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(whole)), rest);
}
inline std::string rfc3339_now() { return rfc3339(std::chrono::system_clock::now()); }

}  // namespace strata::serve
