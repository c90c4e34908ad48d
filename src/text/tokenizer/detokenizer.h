// Turns a stream of tokens into a stream of UTF-8 text.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "text/tokenizer/tokenizer.h"

namespace strata {

// For one answer, used by one thread. The concatenation of everything returned is the answer's
// text, however its tokens are grouped.
class Detokenizer {
 public:
  // `tokenizer` must outlive this object. `options` as for Tokenizer::decode, except that a stream
  // continues a prompt, so that a leading space stays unless asked for otherwise.
  explicit Detokenizer(const Tokenizer& tokenizer,
                       DecodeOptions options = {.strip_space_prefix = false})
      : tokenizer_(&tokenizer), options_(options) {}

  // Returns the text that is certain by now: whole characters, with U+FFFD for each sequence of
  // bytes that no further byte can make valid. Ids outside the vocabulary stand for nothing.
  std::string push(TokenId id);

  // How a stream may end.
  enum class End {
    kCut,       // a limit or a stop: a character that is not complete is dropped
    kComplete,  // the model was done: an incomplete character is an error of its, shown as U+FFFD
  };
  // Returns what is left. The object is then as new.
  std::string finish(End end = End::kCut);

  // Bytes of the incomplete character that is held back.
  std::string_view held_back() const { return held_back_; }

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  bool at_start_ = true;
  std::string held_back_;
};

}  // namespace strata
