// Tells a model's reasoning from its answer, while the text is still streaming.
#pragma once

#include <string>
#include <string_view>

namespace strata {

struct ThinkingTags {
  std::string open, close;  // <think> and </think>, or what the model was trained with
};

// Reasoning is a block at the very start of the output, or what follows when the prompt already
// opened it; tags in the answer stay text. Text is held back only where it may turn out to be a
// tag or the white space around one, which is dropped.
class ReasoningSplitter {
 public:
  struct Piece {
    std::string reasoning, content;
  };

  // Empty tags: all is content. `starts_inside`: the prompt ends in an open block.
  ReasoningSplitter(ThinkingTags tags, bool starts_inside);

  Piece push(std::string_view text);
  // The output ended: gives out what was held back. An unclosed block is reasoning to its end.
  Piece finish();

 private:
  enum class State { kStart, kOpened, kTagged, kReasoning, kClosed, kContent };

  // One step; false where more text is needed.
  bool step(Piece& piece);
  bool skip_open_tag(State otherwise);
  bool take_reasoning(Piece& piece);
  bool skip_space(State then);

  ThinkingTags tags_;
  State state_;
  std::string pending_;
};

}  // namespace strata
