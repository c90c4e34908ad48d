// Ends a stream of text at the first stop string, whatever pieces it comes in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace strata {

// Holds back only a suffix that may still become a stop string. The stop string that is complete
// first ends the text; of several complete at once, the longest. The time is linear in the text.
class StopFilter {
 public:
  // Empty stop strings are ignored.
  explicit StopFilter(const std::vector<std::string>& stops);

  // The text that may be shown. Once a stop string was found, nothing more comes.
  std::string push(std::string_view text);
  // The stream ended by itself: what was held back is text after all.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  // Follows one stop string through the text (Knuth, Morris and Pratt 1977).
  struct Matcher {
    std::string stop;
    std::vector<std::size_t> border;  // of each prefix: its longest proper prefix that ends it
    std::size_t matched = 0;          // bytes of `stop` that the text ends with

    bool advance(char byte);
  };

  std::string_view held() const;

  std::vector<Matcher> matchers_;
  bool stopped_ = false;
};

}  // namespace strata
