#include "text/prompt.h"

#include <algorithm>
#include <ctime>

namespace strata {

PromptMaker::PromptMaker(const Tokenizer& tokenizer, const ChatTemplate* chat, std::int32_t context)
    : tokenizer_(tokenizer), chat_(chat), context_(context) {
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id)
    longest_token_ = std::max(longest_token_, tokenizer.token_bytes(id, true).size());
}

// Before the text is tokenized, which takes its time.
Status PromptMaker::check_room(std::size_t bytes) const {
  if (least_tokens(bytes) <= static_cast<std::size_t>(context_)) return {};
  return invalid_argument(
      "the prompt has {} bytes, more than the context of {} tokens can hold; shorten it or ask for "
      "a larger --context",
      bytes, context_);
}

Result<Prompt> PromptMaker::chat(const ChatInputs& inputs) const {
  STRATA_ASSIGN(const std::vector<RenderedSpan> rendered, chat_->render(inputs));
  return chat(rendered);
}

Result<Prompt> PromptMaker::chat(const std::vector<RenderedSpan>& rendered) const {
  std::vector<TextSpan> spans;
  std::size_t bytes = 0;
  for (const RenderedSpan& span : rendered) {
    spans.push_back({span.text, !span.content});
    bytes += span.text.size();
  }
  STRATA_TRY(check_room(bytes));
  Prompt prompt;
  STRATA_ASSIGN(prompt.tokens, tokenizer_.encode(spans, {.add_bos = true, .add_eos = false}));
  prompt.starts_thinking = chat_->opens_thinking(rendered);
  return prompt;
}

Result<Prompt> PromptMaker::text(std::string_view text, bool control_tokens) const {
  STRATA_TRY(check_room(text.size()));
  Prompt prompt;
  STRATA_ASSIGN(prompt.tokens,
                tokenizer_.encode(text, control_tokens, {.add_bos = true, .add_eos = false}));
  return prompt;
}

std::vector<TokenId> end_tokens(const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id)
    if (tokenizer.is_end_of_generation(id)) tokens.push_back(id);
  return tokens;
}

std::string local_time() {
  const std::time_t time = std::time(nullptr);
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return text;
}

}  // namespace strata
