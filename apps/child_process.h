// Runs another program and takes what it writes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
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

// A program that runs beside this one, and is killed with this object as with this program.
class BackgroundChild {
 public:
  static Result<std::unique_ptr<BackgroundChild>> start(const std::vector<std::string>& arguments);
  ~BackgroundChild();
  BackgroundChild(const BackgroundChild&) = delete;
  BackgroundChild& operator=(const BackgroundChild&) = delete;

  // What it has written to standard error, the end at least, once that holds `text`. Fails where it
  // ends before or takes longer than `limit`.
  Result<std::string> wait_for(std::string_view text, std::chrono::milliseconds limit);

 private:
  class Impl;
  explicit BackgroundChild(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::apps
