#include "text/tool_call_parser.h"

#include <algorithm>

#include "base/printable.h"
#include "text/call_reader.h"
#include "text/json_scanner.h"

namespace strata {
namespace {

constexpr std::string_view kBareObject = "{";

}  // namespace

ToolCallParser::ToolCallParser(ToolStyle style, std::vector<Tool> tools, std::string id_prefix)
    : style_(style), tools_(std::move(tools)), id_prefix_(std::move(id_prefix)) {
  tags_ = tags();
}
ToolCallParser::~ToolCallParser() = default;
ToolCallParser::ToolCallParser(ToolCallParser&&) noexcept = default;
ToolCallParser& ToolCallParser::operator=(ToolCallParser&&) noexcept = default;

ToolCallParser::Piece ToolCallParser::push(std::string_view text) {
  Piece piece;
  if (style_ == ToolStyle::kNone)
    piece.content = text;
  else
    for (const char byte : text) take(byte, piece);
  return piece;
}

ToolCallParser::Piece ToolCallParser::finish(bool complete) {
  Piece piece;
  if (call_ != nullptr) {
    piece.cut = announced_ && !call_->whole();
    if (!announced_ || (complete && !call_->whole())) abandon(piece, "is not complete");
    end_call();
  }
  if (!tag_.empty()) show(std::exchange(tag_, {}), piece);
  if (!behind_call_) piece.content += std::exchange(space_, {});
  return piece;
}

// What can start a call here.
std::vector<std::string_view> ToolCallParser::tags() const {
  std::vector<std::string_view> out;
  switch (style_) {
    case ToolStyle::kNone: return out;
    case ToolStyle::kHermes: out = {kCallTag}; break;
    case ToolStyle::kFunctionTags: out = {kCallTag, kFunctionTag}; break;
    case ToolStyle::kLlama:
      out = {kPythonTag};
      if (at_start_) out.push_back(kBareObject);
      return out;
  }
  if (behind_call_) out.push_back(kEndCallTag);
  return out;
}

void ToolCallParser::take(char byte, Piece& piece) {
  if (call_ != nullptr)
    take_call(byte, piece);
  else
    take_text(byte, piece);
}

void ToolCallParser::take_text(char byte, Piece& piece) {
  tag_ += byte;
  while (!tag_.empty()) {
    const auto match =
        std::ranges::find_if(tags_, [&](std::string_view tag) { return tag.starts_with(tag_); });
    if (match != tags_.end()) {
      if (tag_ == *match) start_call(*match);
      return;
    }
    const char first = tag_.front();
    tag_.erase(0, 1);
    // Llama's models write a semicolon between calls.
    if (is_json_space(first) || (first == ';' && style_ == ToolStyle::kLlama && behind_call_))
      space_ += first;
    else
      show(std::string_view(&first, 1), piece);
  }
}

// Text that is content for certain, behind the white space that was held back.
void ToolCallParser::show(std::string_view text, Piece& piece) {
  if (behind_call_ && !has_content_) space_.erase(0, std::min(space_.find(';'), space_.size()));
  has_content_ = true;
  piece.content += std::exchange(space_, {});
  piece.content += text;
  if (!at_start_) return;
  at_start_ = behind_call_ = false;
  tags_ = tags();
}

void ToolCallParser::start_call(std::string_view tag) {
  tag_.clear();
  if (tag == kEndCallTag) return;
  raw_ = tag;
  announced_ = false;
  if (style_ == ToolStyle::kFunctionTags) {
    call_ = read_tagged_call(tools_, tag == kFunctionTag);
  } else {
    call_ = read_json_call(tools_, style_ == ToolStyle::kLlama);
    if (tag == kBareObject) call_->push('{');
  }
}

void ToolCallParser::take_call(char byte, Piece& piece) {
  const bool was_whole = announced_ && call_->whole();
  const CallReader::Step step = call_->push(byte);
  if (step == CallReader::Step::kBroken || step == CallReader::Step::kMalformed) {
    abandon(piece, "is malformed");
    end_call();
    if (step == CallReader::Step::kBroken) take(byte, piece);
    return;
  }
  if (!call_->name().empty()) announce(piece);
  if (step == CallReader::Step::kDoneBefore) {
    // What came behind the arguments did not belong to the call.
    const std::string behind = std::exchange(raw_, {});
    end_call();
    for (const char held : behind) take(held, piece);
    take(byte, piece);
    return;
  }
  if (step == CallReader::Step::kDone)
    end_call();
  else if (!announced_ || was_whole)
    raw_ += byte;
}

void ToolCallParser::announce(Piece& piece) {
  const bool first = !announced_;
  if (first) {
    announced_ = true;
    ++index_;
    raw_.clear();
    space_.clear();
  }
  std::string arguments = call_->take_arguments();
  if (!first && arguments.empty()) return;
  if (piece.calls.empty() || piece.calls.back().index != index_)
    piece.calls.push_back({.index = index_, .id = {}, .name = {}, .arguments = {}});
  ToolCallDelta& delta = piece.calls.back();
  if (first) {
    delta.id = fmt::format("{}{}", id_prefix_, index_);
    delta.name = call_->name();
  }
  delta.arguments += arguments;
}

// The call that is being read is none, or malformed.
void ToolCallParser::abandon(Piece& piece, std::string_view trouble) {
  if (!announced_) {
    show(std::exchange(raw_, {}), piece);
  } else if (!failed_) {
    failed_ = true;
    piece.error = corrupt("the model's call of the tool \"{}\" {}; ask it again",
                          printable(call_->name(), 64), trouble);
  }
}

void ToolCallParser::end_call() {
  call_.reset();
  raw_.clear();
  if (!announced_) return;
  at_start_ = behind_call_ = true;
  tags_ = tags();
}

}  // namespace strata
