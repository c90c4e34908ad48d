// A progress bar on standard error, only where that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace strata::apps {

class Progress {
 public:
  // Appears after `delay`, so that what is quick leaves no flicker.
  explicit Progress(std::string label,
                    std::chrono::milliseconds delay = std::chrono::milliseconds(300));
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string label_;
  bool enabled_;
  bool shown_ = false;
  Clock::time_point next_;
};

// "label [#####.....]  50 %"
std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total);

}  // namespace strata::apps
