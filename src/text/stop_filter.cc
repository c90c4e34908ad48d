#include "text/stop_filter.h"

#include <algorithm>

namespace strata {

StopFilter::StopFilter(const std::vector<std::string>& stops) {
  for (const std::string& stop : stops) {
    if (stop.empty()) continue;
    Matcher matcher{stop, std::vector<std::size_t>(stop.size() + 1)};
    // A prefix's border is what the text it is without its first byte leaves matched.
    for (std::size_t i = 1; i < stop.size(); ++i) {
      (void)matcher.advance(stop[i]);
      matcher.border[i + 1] = matcher.matched;
    }
    matcher.matched = 0;
    matchers_.push_back(std::move(matcher));
  }
}

bool StopFilter::Matcher::advance(char byte) {
  while (matched > 0 && stop[matched] != byte) matched = border[matched];
  if (stop[matched] == byte) ++matched;
  return matched == stop.size();
}

std::string StopFilter::push(std::string_view text) {
  if (stopped_) return {};
  const std::string_view before = held();
  std::size_t taken = 0, found = 0;
  while (taken < text.size() && found == 0) {
    for (Matcher& matcher : matchers_)
      if (matcher.advance(text[taken])) found = std::max(found, matcher.matched);
    ++taken;
  }
  stopped_ = found > 0;
  const std::size_t kept = stopped_ ? found : held().size();
  const std::size_t shown = before.size() + taken - kept;
  std::string out(before.substr(0, shown));
  if (shown > before.size()) out += text.substr(0, shown - before.size());
  return out;
}

std::string StopFilter::finish() {
  std::string out(stopped_ ? std::string_view() : held());
  for (Matcher& matcher : matchers_) matcher.matched = 0;
  return out;
}

// What the text ends with is the start of the stop string that waits for most.
std::string_view StopFilter::held() const {
  std::string_view longest;
  for (const Matcher& matcher : matchers_)
    if (matcher.matched > longest.size())
      longest = std::string_view(matcher.stop).substr(0, matcher.matched);
  return longest;
}

}  // namespace strata
