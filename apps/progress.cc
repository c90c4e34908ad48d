#include "progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "say.h"

namespace strata::apps {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kInterval{100};

}  // namespace

Progress::Progress(std::string label, std::chrono::milliseconds delay)
    : label_(std::move(label)), enabled_(isatty(STDERR_FILENO) == 1), next_(Clock::now() + delay) {}

void Progress::update(std::uint64_t done, std::uint64_t total) {
  const auto now = Clock::now();
  if (!enabled_ || now < next_) return;
  next_ = now + kInterval;
  shown_ = true;
  say("\r{}\x1b[K", progress_line(label_, done, total));
}

void Progress::clear() {
  if (!shown_) return;
  shown_ = false;
  say("\r\x1b[K");
}

std::string progress_line(const std::string& label, std::uint64_t done, std::uint64_t total) {
  const double share =
      total == 0 ? 1.0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const int filled = static_cast<int>(share * kBarWidth);
  return fmt::format("{} [{:#<{}}{:.<{}}] {:3.0f} %", label, "", filled, "", kBarWidth - filled,
                     share * 100);
}

}  // namespace strata::apps
