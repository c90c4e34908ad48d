#include "text/answer.h"

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace strata {
namespace {

std::vector<std::string> visible_tags(const AnswerOptions& options) {
  std::vector<std::string> out = {options.tags.open, options.tags.close};
  for (const std::string_view tag : tool_tags(options.tool_style)) out.emplace_back(tag);
  std::erase(out, "");
  return out;
}

}  // namespace

AnswerText::AnswerText(const Tokenizer& tokenizer, AnswerOptions options)
    : tokenizer_(&tokenizer),
      detokenizer_(tokenizer),
      stops_(options.stops),
      visible_(visible_tags(options)),
      splitter_(std::move(options.tags), options.starts_thinking),
      parser_(options.tool_style, std::move(options.tools), std::move(options.call_id_prefix)) {}

AnswerDelta AnswerText::push(TokenId token) {
  tokens_.push_back(token);
  return parse(splitter_.push(stops_.push(text_of(token))));
}

// Tags are text even where the vocabulary has them as control tokens.
std::string AnswerText::text_of(TokenId token) {
  if (tokenizer_->contains(token) && tokenizer_->token_bytes(token).empty()) {
    const std::string_view spelled = tokenizer_->token_text(token);
    if (std::ranges::find(visible_, spelled) != visible_.end())
      return detokenizer_.finish(Detokenizer::End::kComplete).append(spelled);
  }
  return detokenizer_.push(token);
}

AnswerDelta AnswerText::finish(Detokenizer::End end) {
  const bool complete = end == Detokenizer::End::kComplete && !stops_.stopped();
  std::string rest = stops_.push(detokenizer_.finish(end));
  rest += stops_.finish();
  AnswerDelta delta = parse(splitter_.push(rest));
  const auto add = [&](AnswerDelta more) {
    delta.reasoning += more.reasoning;
    delta.content += more.content;
    for (ToolCallDelta& call : more.calls) {
      if (!delta.calls.empty() && delta.calls.back().index == call.index)
        delta.calls.back().arguments += call.arguments;
      else
        delta.calls.push_back(std::move(call));
    }
    if (delta.error.ok()) delta.error = more.error;
  };
  add(parse(splitter_.finish()));
  auto last = parser_.finish(complete);
  const bool cut = last.cut;
  add(keep({{}, std::move(last.content), std::move(last.calls), std::move(last.error)}));
  if (cut) calls_.back().complete = false;
  return delta;
}

AnswerDelta AnswerText::parse(ReasoningSplitter::Piece piece) {
  auto parsed = parser_.push(piece.content);
  return keep({std::move(piece.reasoning), std::move(parsed.content), std::move(parsed.calls),
               std::move(parsed.error)});
}

AnswerDelta AnswerText::keep(AnswerDelta delta) {
  reasoning_ += delta.reasoning;
  content_ += delta.content;
  for (const ToolCallDelta& call : delta.calls) {
    if (static_cast<std::size_t>(call.index) == calls_.size())
      calls_.push_back({call.id, call.name, {}});
    calls_.back().arguments += call.arguments;
  }
  if (error_.ok()) error_ = delta.error;
  return delta;
}

TokenPiece token_piece(const Tokenizer& tokenizer, TokenId id) {
  const std::string bytes(tokenizer.token_bytes(id, true));
  return {replace_invalid_utf8(bytes), bytes};
}

}  // namespace strata
