#include "text/tagged_call.h"

#include <algorithm>
#include <boost/json/value.hpp>
#include <optional>
#include <utility>

#include "text/call_reader.h"
#include "text/json_kinds.h"
#include "text/json_scanner.h"

namespace strata {
namespace {

bool fits_label(char byte) { return !is_json_space(byte) && byte != '<' && byte != '>'; }

class TaggedCall final : public CallReader {
 public:
  TaggedCall(std::span<const Tool> tools, bool in_function)
      : tools_(tools), state_(in_function ? State::kName : State::kOpen) {}

  Step push(char byte) override;
  bool whole() const override { return state_ == State::kAfter; }

 private:
  enum class State : std::uint8_t { kOpen, kName, kBody, kKey, kValue, kAfter };

  Step tag(char byte);
  Step label(char byte);
  bool end_name();
  bool end_key();
  Step value(char byte);
  void put(char byte);
  void end_value();

  std::span<const Tool> tools_;
  State state_;
  std::string tag_;    // what has come of a tag
  std::string label_;  // of a name or key
  bool has_arguments_ = false;
  std::optional<KindReader> reader_;  // of the tool's parameters, if it is one of `tools_`
  unsigned kinds_ = JsonKinds::kAny;  // of the value that is being read
  bool at_value_start_ = false;
  std::string value_;  // unless it streams
};

TaggedCall::Step TaggedCall::push(char byte) {
  switch (state_) {
    case State::kOpen:
    case State::kBody: return tag(byte);
    case State::kName:
    case State::kKey: return label(byte);
    case State::kValue: return value(byte);
    case State::kAfter: break;
  }
  return Step::kDoneBefore;
}

TaggedCall::Step TaggedCall::tag(char byte) {
  if (tag_.empty() && is_json_space(byte)) return Step::kMore;
  tag_ += byte;
  const bool in_body = state_ == State::kBody;
  const std::string_view opening = in_body ? kParameterTag : kFunctionTag;
  const bool may_end = in_body && (kEndFunction.starts_with(tag_) || kEndCallTag.starts_with(tag_));
  if (!opening.starts_with(tag_) && !may_end) return Step::kBroken;
  if (tag_ == opening) {
    state_ = in_body ? State::kKey : State::kName;
    tag_.clear();
    label_.clear();
  } else if (tag_ == kEndFunction || tag_ == kEndCallTag) {
    arguments_ += '}';
    state_ = State::kAfter;
    return Step::kDone;
  }
  return Step::kMore;
}

TaggedCall::Step TaggedCall::label(char byte) {
  if (byte != '>') {
    const bool fits = fits_label(byte) || (byte == ' ' && state_ == State::kKey);
    if (!fits || label_.size() == kMostLabelBytes) return Step::kBroken;
    label_ += byte;
    return Step::kMore;
  }
  return (state_ == State::kName ? end_name() : end_key()) ? Step::kMore : Step::kBroken;
}

bool TaggedCall::end_name() {
  if (label_.empty()) return false;
  name_ = label_;
  if (const auto tool = std::ranges::find(tools_, name_, &Tool::name); tool != tools_.end())
    reader_.emplace(tool->parameters);
  arguments_ = "{";
  state_ = State::kBody;
  return true;
}

// A key may come again, as in JSON.
bool TaggedCall::end_key() {
  if (label_.empty()) return false;
  kinds_ = reader_ ? reader_->member_kinds(label_) : JsonKinds::kAny;
  if (std::exchange(has_arguments_, true)) arguments_ += ", ";
  arguments_ += json_quoted(label_) + ": ";
  if (kinds_ == JsonKinds::kString) arguments_ += '"';
  at_value_start_ = true;
  value_.clear();
  state_ = State::kValue;
  return true;
}

TaggedCall::Step TaggedCall::value(char byte) {
  tag_ += byte;
  while (!tag_.empty()) {
    if (tag_ == kEndParameterLine || tag_ == kEndParameter) {
      tag_.clear();
      end_value();
      return Step::kMore;
    }
    if (tag_ == kEndCallTag) return Step::kMalformed;
    if (kEndParameterLine.starts_with(tag_) || kEndParameter.starts_with(tag_) ||
        kEndCallTag.starts_with(tag_))
      return Step::kMore;
    put(tag_.front());
    tag_.erase(0, 1);
  }
  return Step::kMore;
}

// The template puts a line break before a value too.
void TaggedCall::put(char byte) {
  const bool dropped = at_value_start_ && byte == '\n';
  at_value_start_ = false;
  if (dropped) return;
  if (kinds_ == JsonKinds::kString)
    append_json_byte(byte, arguments_);
  else
    value_ += byte;
}

void TaggedCall::end_value() {
  arguments_ += kinds_ == JsonKinds::kString ? "\"" : tagged_value(value_, kinds_);
  state_ = State::kBody;
}

}  // namespace

bool is_tagged_key(std::string_view key) {
  return !key.empty() && key.size() <= kMostLabelBytes &&
         std::ranges::all_of(key, [](char byte) { return fits_label(byte) || byte == ' '; });
}

bool is_tagged_text(std::string_view text) {
  return text.find(kEndParameter) == text.npos && text.find(kEndCallTag) == text.npos;
}

std::string tagged_value(const std::string& text, unsigned kinds) {
  const bool may_be_text = (kinds & JsonKinds::kString) != 0;
  if (const auto json = strict_json(text)) {
    const unsigned kind = json_kind_of(*json);
    const bool number = (kind & JsonKinds::kNumber) != 0 && (kinds & JsonKinds::kNumber) != 0;
    if (kind != JsonKinds::kString && ((kinds & kind) != 0 || (number && !may_be_text)))
      return *json;
  }
  // As Python spells them.
  if (!may_be_text) {
    if ((kinds & JsonKinds::kTrue) != 0 && text == "True") return "true";
    if ((kinds & JsonKinds::kFalse) != 0 && text == "False") return "false";
    if ((kinds & JsonKinds::kNull) != 0 && text == "None") return "null";
  }
  return json_quoted(text);
}

std::unique_ptr<CallReader> read_tagged_call(std::span<const Tool> tools, bool in_function) {
  return std::make_unique<TaggedCall>(tools, in_function);
}

}  // namespace strata
