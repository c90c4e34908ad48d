// Looks for a text in bytes that come one by one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace strata {

// Knuth, Morris, Pratt, "Fast Pattern Matching in Strings", 1977. REQUIRES: text is not empty.
class TextSearch {
 public:
  explicit TextSearch(std::string text) : text_(std::move(text)), shorter_(text_.size()) {
    for (std::uint32_t i = 1; i < text_.size(); ++i) shorter_[i] = next(shorter_[i - 1], text_[i]);
  }

  const std::string& text() const { return text_; }
  // How much of the text has just been read, after another byte. REQUIRES: matched is less than
  // all.
  std::uint32_t next(std::uint32_t matched, char byte) const {
    while (matched > 0 && text_[matched] != byte) matched = shorter_[matched - 1];
    return matched + (text_[matched] == byte);
  }
  bool found(std::uint32_t matched) const { return matched == text_.size(); }

 private:
  std::string text_;
  // By the last byte of a part of the text: how long the start of the text is that it ends with.
  std::vector<std::uint32_t> shorter_;
};

}  // namespace strata
