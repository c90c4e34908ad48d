#include "text/stop_filter.h"

#include <algorithm>
#include <utility>

namespace strata {

StopFilter::StopFilter(std::vector<std::string> stops) : stops_(std::move(stops)) {
  std::erase_if(stops_, [](const std::string& stop) { return stop.empty(); });
}

std::string StopFilter::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;
  std::size_t first = std::string::npos;
  for (const std::string& stop : stops_) first = std::min(first, held_.find(stop));
  if (first != std::string::npos) {
    stopped_ = true;
    held_.resize(first);
    return std::exchange(held_, {});
  }
  // The longest suffix that is a proper prefix of a stop string waits.
  std::size_t waiting = 0;
  for (const std::string& stop : stops_) {
    std::size_t length = std::min(stop.size() - 1, held_.size());
    while (length > waiting && !std::string_view(stop).starts_with(
                                   std::string_view(held_).substr(held_.size() - length)))
      --length;
    waiting = std::max(waiting, length);
  }
  std::string out = held_.substr(0, held_.size() - waiting);
  held_.erase(0, held_.size() - waiting);
  return out;
}

std::string StopFilter::finish() {
  if (stopped_) return {};
  return std::exchange(held_, {});
}

}  // namespace strata
