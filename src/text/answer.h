// One choice's way from tokens to what a client sees.
#pragma once

#include <string>
#include <vector>

#include "text/reasoning.h"
#include "text/stop_filter.h"
#include "text/tokenizer/detokenizer.h"
#include "text/tool_call_parser.h"

namespace strata {

struct AnswerOptions {
  std::vector<std::string> stops = {};
  ThinkingTags tags = {};                   // empty: the model does not think
  bool starts_thinking = false;             // the prompt ends in an open block
  ToolStyle tool_style = ToolStyle::kNone;  // kNone also where no tools were offered
  std::vector<Tool> tools = {};
  std::string call_id_prefix = "call_";  // before the index of a call
};

// What a token adds; whole characters.
struct AnswerDelta {
  std::string reasoning, content;
  std::vector<ToolCallDelta> calls;  // at most one for each call
  Status error;                      // kCorrupt: a malformed tool call; said once

  bool empty() const { return reasoning.empty() && content.empty() && calls.empty() && error.ok(); }
};

struct ToolCall {
  std::string id, name, arguments;
  bool complete = true;  // else the answer ended inside it: the last one's arguments are cut
};

// Tokens become characters, which are cut at stop strings, then told apart as reasoning, tool
// calls and content. The deltas joined are the answer: streamed or not, it is the same.
class AnswerText {
 public:
  // `tokenizer` must outlive this object.
  AnswerText(const Tokenizer& tokenizer, AnswerOptions options);

  AnswerDelta push(TokenId token);
  // Nothing may be pushed after it.
  AnswerDelta finish(Detokenizer::End end);

  // Whether a stop string ended the text: no delta comes any more but that of finish().
  bool stopped() const { return stops_.stopped(); }
  const std::vector<TokenId>& tokens() const { return tokens_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::string& content() const { return content_; }
  const std::vector<ToolCall>& calls() const { return calls_; }
  // The error of the delta that had one.
  const Status& error() const { return error_; }

 private:
  std::string text_of(TokenId token);
  AnswerDelta parse(ReasoningSplitter::Piece piece);
  AnswerDelta keep(AnswerDelta delta);

  const Tokenizer* tokenizer_;
  Detokenizer detokenizer_;
  StopFilter stops_;
  std::vector<std::string> visible_;  // control tokens that are text here
  ReasoningSplitter splitter_;
  ToolCallParser parser_;
  std::vector<TokenId> tokens_;
  std::string reasoning_, content_;
  std::vector<ToolCall> calls_;
  Status error_;
};

// A token on its own, as lists of log probabilities show it.
struct TokenPiece {
  std::string text;   // U+FFFD for what is no whole character
  std::string bytes;  // joined over an answer's tokens they are its text
};
TokenPiece token_piece(const Tokenizer& tokenizer, TokenId id);

}  // namespace strata
