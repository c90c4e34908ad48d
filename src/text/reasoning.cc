#include "text/reasoning.h"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::size_t leading_space(std::string_view text) {
  return std::min(text.find_first_not_of(kSpace), text.size());
}

// Length of the longest end of `text` that a tag could start with.
std::size_t open_end(std::string_view text, std::string_view tag) {
  for (std::size_t size = std::min(text.size(), tag.size() - 1); size > 0; --size) {
    if (text.ends_with(tag.substr(0, size))) return size;
  }
  return 0;
}

}  // namespace

ReasoningSplitter::ReasoningSplitter(ThinkingTags tags, bool starts_inside)
    : tags_(std::move(tags)), state_(starts_inside ? State::kOpened : State::kStart) {
  if (tags_.open.empty() || tags_.close.empty()) state_ = State::kContent;
}

ReasoningSplitter::Piece ReasoningSplitter::push(std::string_view text) {
  pending_ += text;
  Piece piece;
  while (!pending_.empty() && step(piece)) continue;
  return piece;
}

ReasoningSplitter::Piece ReasoningSplitter::finish() {
  Piece piece;
  const bool reasoning = state_ == State::kOpened || state_ == State::kReasoning;
  if (state_ != State::kClosed) (reasoning ? piece.reasoning : piece.content) = pending_;
  pending_.clear();
  return piece;
}

bool ReasoningSplitter::step(Piece& piece) {
  switch (state_) {
    case State::kStart: return skip_open_tag(State::kContent);
    case State::kOpened: return skip_open_tag(State::kReasoning);
    case State::kReasoning: return take_reasoning(piece);
    case State::kTagged: return skip_space(State::kReasoning);
    case State::kClosed: return skip_space(State::kContent);
    case State::kContent: piece.content += std::exchange(pending_, {}); return false;
  }
  return false;
}

// Past white space and an opening tag; where none can come any more, on as `otherwise`.
bool ReasoningSplitter::skip_open_tag(State otherwise) {
  const std::size_t space = leading_space(pending_);
  const std::string_view text = std::string_view(pending_).substr(space);
  if (text.starts_with(tags_.open)) {
    pending_.erase(0, space + tags_.open.size());
    state_ = State::kTagged;
    return true;
  }
  if (std::string_view(tags_.open).starts_with(text)) return false;
  if (otherwise == State::kReasoning) pending_.erase(0, space);
  state_ = otherwise;
  return true;
}

bool ReasoningSplitter::take_reasoning(Piece& piece) {
  const std::string_view text = pending_;
  const std::size_t close = text.find(tags_.close);
  const bool closed = close != std::string_view::npos;
  const std::size_t certain = closed ? close : text.size() - open_end(text, tags_.close);
  const std::size_t last = text.substr(0, certain).find_last_not_of(kSpace);
  const std::size_t taken = last == std::string_view::npos ? 0 : last + 1;
  piece.reasoning += text.substr(0, taken);
  pending_.erase(0, closed ? close + tags_.close.size() : taken);
  if (closed) state_ = State::kClosed;
  return closed;
}

bool ReasoningSplitter::skip_space(State then) {
  pending_.erase(0, leading_space(pending_));
  if (pending_.empty()) return false;
  state_ = then;
  return true;
}

}  // namespace strata
