// Ends a stream of text at the first stop string, whatever pieces it comes in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Holds back only a suffix that may still become a stop string.
class StopFilter {
 public:
  // Empty stop strings are ignored.
  explicit StopFilter(std::vector<std::string> stops);

  // The text that may be shown. Once a stop string was found, nothing more comes.
  std::string push(std::string_view text);
  // The stream ended by itself: what was held back is text after all.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace strata
