// From a conversation or a text to the tokens of a prompt.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/chat.h"
#include "text/tokenizer/tokenizer.h"

namespace strata {

struct Prompt {
  std::vector<TokenId> tokens;
  bool starts_thinking = false;  // it ends inside a thinking block
};

// Immutable; safe to use from any thread.
class PromptMaker {
 public:
  // `tokenizer` and `chat` must outlive this object; `chat` may be null. `context`: tokens that a
  // prompt and its answer may have.
  PromptMaker(const Tokenizer& tokenizer, const ChatTemplate* chat, std::int32_t context);

  // REQUIRES: there is a template. Its BOS and the vocabulary's are one.
  Result<Prompt> chat(const ChatInputs& inputs) const;
  // Of what the template made.
  Result<Prompt> chat(const std::vector<RenderedSpan>& rendered) const;
  // `control_tokens`: the text may hold some.
  Result<Prompt> text(std::string_view text, bool control_tokens) const;

  // The least tokens that could spell so many bytes.
  std::size_t least_tokens(std::size_t bytes) const { return bytes / longest_token_; }

 private:
  Status check_room(std::size_t bytes) const;

  const Tokenizer& tokenizer_;
  const ChatTemplate* const chat_;
  const std::int32_t context_;
  std::size_t longest_token_ = 16;  // bytes; never less, so that short overruns get a number
};

// Every token that ends an answer.
std::vector<TokenId> end_tokens(const Tokenizer& tokenizer);

// The time as ChatInputs have it, "2026-03-14T15:09:26", where this process is.
std::string local_time();

}  // namespace strata
