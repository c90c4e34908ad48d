#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <optional>

#include "text/call_reader.h"
#include "text/json_scanner.h"

namespace strata {
namespace {

// The text of a JSON string.
std::optional<std::string> unquoted(const std::string& json) {
  boost::system::error_code error;
  const boost::json::value value = boost::json::parse(json, error);
  if (error || !value.is_string()) return std::nullopt;
  return std::string(value.get_string());
}

class JsonCall final : public CallReader {
 public:
  JsonCall(std::span<const Tool> tools, bool bare) : tools_(tools), bare_(bare) {}

  Step push(char byte) override;
  bool whole() const override { return !name_.empty() && has_arguments_; }

 private:
  enum class State : std::uint8_t {
    kOpen,
    kFirstKey,
    kKey,
    kInKey,
    kColon,
    kValue,
    kInValue,
    kAfterValue
  };
  enum class Field : std::uint8_t { kName, kArguments, kOther };

  Step structure(char byte);
  Step start_value(char byte);
  Step scan(char byte);
  bool end_key();
  bool end_value();
  bool take_name();
  Step end_object();
  void announce();
  Step broken() const { return whole() ? Step::kDoneBefore : Step::kBroken; }

  std::span<const Tool> tools_;
  bool bare_;
  State state_ = State::kOpen;
  Field field_ = Field::kOther;
  JsonScanner scanner_;
  std::string text_;           // of the key or value that is being read, where it is wanted
  std::string known_name_;     // before it is announced
  bool object_begun_ = false;  // arguments that stream
  bool has_arguments_ = false;
};

JsonCall::Step JsonCall::push(char byte) {
  if (state_ == State::kInKey || state_ == State::kInValue) return scan(byte);
  if (is_json_space(byte)) return Step::kMore;
  return structure(byte);
}

JsonCall::Step JsonCall::structure(char byte) {
  const auto expect = [&](char wanted, State next) {
    state_ = next;
    return byte == wanted ? Step::kMore : broken();
  };
  switch (state_) {
    case State::kOpen: return expect('{', State::kFirstKey);
    case State::kColon: return expect(':', State::kValue);
    case State::kValue: return start_value(byte);
    case State::kAfterValue:
      if (byte == '}') return end_object();
      return expect(',', State::kKey);
    default: break;  // kFirstKey, kKey
  }
  if (byte == '}' && state_ == State::kFirstKey) return end_object();
  if (byte != '"') return broken();
  scanner_ = {};
  text_.clear();
  state_ = State::kInKey;
  return scan(byte);
}

JsonCall::Step JsonCall::start_value(char byte) {
  const bool fits =
      field_ == Field::kOther || byte == '"' || (field_ == Field::kArguments && byte == '{');
  if (!fits) return broken();
  scanner_ = {};
  text_.clear();
  state_ = State::kInValue;
  object_begun_ = field_ == Field::kArguments && byte == '{';
  if (object_begun_) announce();
  return scan(byte);
}

JsonCall::Step JsonCall::scan(char byte) {
  const bool in_string = scanner_.in_string();
  const JsonScanner::Step step = scanner_.push(byte);
  if (step == JsonScanner::Step::kBroken) return broken();
  if (step != JsonScanner::Step::kDoneBefore) {
    const bool streams = state_ == State::kInValue && object_begun_;
    append_scanned(byte, in_string, streams ? arguments_ : text_);
  }
  if (step == JsonScanner::Step::kMore) return Step::kMore;
  if (!(state_ == State::kInKey ? end_key() : end_value())) return broken();
  return step == JsonScanner::Step::kDoneBefore ? push(byte) : Step::kMore;
}

bool JsonCall::end_key() {
  const auto key = unquoted(text_);
  state_ = State::kColon;
  field_ = key == "name"                               ? Field::kName
           : key == "arguments" || key == "parameters" ? Field::kArguments
                                                       : Field::kOther;
  const bool again = (field_ == Field::kName && !known_name_.empty()) ||
                     (field_ == Field::kArguments && has_arguments_);
  const bool strange = bare_ && field_ == Field::kOther && key != "type" && key != "id";
  return key && !again && !strange;
}

bool JsonCall::end_value() {
  state_ = State::kAfterValue;
  if (field_ == Field::kName) return take_name();
  if (field_ == Field::kOther) return true;
  if (!object_begun_) {
    // An object in a string.
    const auto inner = unquoted(text_);
    const auto object = inner ? strict_json(*inner) : std::nullopt;
    if (!object || object->front() != '{') return false;
    arguments_ = *object;
  }
  object_begun_ = false;
  has_arguments_ = true;
  announce();
  return true;
}

bool JsonCall::take_name() {
  const auto name = unquoted(text_);
  if (!name || name->empty()) return false;
  if (bare_ && !tools_.empty() && std::ranges::find(tools_, *name, &Tool::name) == tools_.end())
    return false;
  known_name_ = *name;
  announce();
  return true;
}

// It is a call once its name and the start of its arguments are there.
void JsonCall::announce() {
  if (object_begun_ || has_arguments_) name_ = known_name_;
}

JsonCall::Step JsonCall::end_object() {
  if (known_name_.empty()) return Step::kBroken;
  if (!has_arguments_) {
    if (bare_) return Step::kBroken;
    arguments_ = "{}";
    has_arguments_ = true;
    announce();
  }
  return Step::kDone;
}

}  // namespace

std::unique_ptr<CallReader> read_json_call(std::span<const Tool> tools, bool bare) {
  return std::make_unique<JsonCall>(tools, bare);
}

}  // namespace strata
