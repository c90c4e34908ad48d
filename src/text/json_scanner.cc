#include "text/json_scanner.h"

#include <fmt/format.h>

namespace strata {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_hex(char byte) {
  return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

}  // namespace

JsonScanner::Step JsonScanner::push(char byte) {
  switch (state_) {
    case State::kString: return string(byte);
    case State::kEscape:
      if (byte == 'u') {
        hex_digits_ = 4;
        state_ = State::kHex;
        return Step::kMore;
      }
      state_ = State::kString;
      return std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos ? Step::kMore
                                                                                 : Step::kBroken;
    case State::kHex:
      if (!is_hex(byte)) return Step::kBroken;
      if (--hex_digits_ == 0) state_ = State::kString;
      return Step::kMore;
    case State::kLiteral:
      if (byte != literal_.front()) return Step::kBroken;
      literal_.remove_prefix(1);
      return literal_.empty() ? ended() : Step::kMore;
    case State::kMinus:
    case State::kZero:
    case State::kInteger:
    case State::kPoint:
    case State::kFraction:
    case State::kExponent:
    case State::kExponentSign:
    case State::kExponentDigits: return number(byte);
    default: return between(byte);
  }
}

bool JsonScanner::whole() const {
  const bool in_number = state_ == State::kZero || state_ == State::kInteger ||
                         state_ == State::kFraction || state_ == State::kExponentDigits;
  return open_.empty() && (state_ == State::kAfter || in_number);
}

JsonScanner::Step JsonScanner::between(char byte) {
  if (is_json_space(byte) && !open_.empty()) return Step::kMore;
  switch (state_) {
    case State::kFirstItem:
      if (byte == ']') return close();
      [[fallthrough]];
    case State::kValue: return start_value(byte);
    case State::kFirstKey:
      if (byte == '}') return close();
      [[fallthrough]];
    case State::kKey:
      is_key_ = true;
      state_ = State::kString;
      return byte == '"' ? Step::kMore : Step::kBroken;
    case State::kColon: state_ = State::kValue; return byte == ':' ? Step::kMore : Step::kBroken;
    default: break;  // kAfter
  }
  if (open_.empty()) return Step::kBroken;
  const bool in_object = open_.back() == '{';
  if (byte == (in_object ? '}' : ']')) return close();
  state_ = in_object ? State::kKey : State::kValue;
  return byte == ',' ? Step::kMore : Step::kBroken;
}

JsonScanner::Step JsonScanner::start_value(char byte) {
  switch (byte) {
    case '{': return open(byte, State::kFirstKey);
    case '[': return open(byte, State::kFirstItem);
    case '"':
      is_key_ = false;
      state_ = State::kString;
      return Step::kMore;
    case '-': state_ = State::kMinus; return Step::kMore;
    case '0': state_ = State::kZero; return Step::kMore;
    case 't': literal_ = "rue"; break;
    case 'f': literal_ = "alse"; break;
    case 'n': literal_ = "ull"; break;
    default: state_ = State::kInteger; return is_digit(byte) ? Step::kMore : Step::kBroken;
  }
  state_ = State::kLiteral;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::open(char bracket, State inside) {
  if (open_.size() == kMaxDepth) return Step::kBroken;
  open_ += bracket;
  state_ = inside;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::close() {
  open_.pop_back();
  return ended();
}

JsonScanner::Step JsonScanner::string(char byte) {
  if (byte == '\\') state_ = State::kEscape;
  if (byte != '"') return Step::kMore;
  if (!is_key_) return ended();
  state_ = State::kColon;
  return Step::kMore;
}

JsonScanner::Step JsonScanner::number(char byte) {
  const auto on = [&](State next) {
    state_ = next;
    return Step::kMore;
  };
  const bool exponent = byte == 'e' || byte == 'E';
  switch (state_) {
    case State::kMinus:
      if (byte == '0') return on(State::kZero);
      return is_digit(byte) ? on(State::kInteger) : Step::kBroken;
    case State::kPoint: return is_digit(byte) ? on(State::kFraction) : Step::kBroken;
    case State::kExponent:
      if (byte == '+' || byte == '-') return on(State::kExponentSign);
      [[fallthrough]];
    case State::kExponentSign: return is_digit(byte) ? on(State::kExponentDigits) : Step::kBroken;
    case State::kInteger:
      if (is_digit(byte)) return Step::kMore;
      [[fallthrough]];
    case State::kZero:
      if (byte == '.') return on(State::kPoint);
      if (exponent) return on(State::kExponent);
      break;
    case State::kFraction:
      if (exponent) return on(State::kExponent);
      [[fallthrough]];
    default:
      if (is_digit(byte)) return Step::kMore;
  }
  // The number ended before this byte, which belongs to what holds it.
  state_ = State::kAfter;
  return open_.empty() ? Step::kDoneBefore : between(byte);
}

void append_json_byte(char byte, std::string& out) {
  switch (byte) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  if (static_cast<unsigned char>(byte) < 0x20)
    out += fmt::format("\\u{:04x}", static_cast<unsigned>(byte));
  else
    out += byte;
}

void append_scanned(char byte, bool in_string, std::string& out) {
  if (in_string && static_cast<unsigned char>(byte) < 0x20)
    append_json_byte(byte, out);
  else
    out += byte;
}

std::string json_quoted(std::string_view text) {
  std::string out = "\"";
  for (const char byte : text) append_json_byte(byte, out);
  return out += '"';
}

std::optional<std::string> strict_json(std::string_view text) {
  const std::size_t first = text.find_first_not_of(kJsonSpace);
  if (first == std::string_view::npos) return std::nullopt;
  text = text.substr(first, text.find_last_not_of(kJsonSpace) + 1 - first);
  JsonScanner scanner;
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool in_string = scanner.in_string();
    const JsonScanner::Step step = scanner.push(text[i]);
    if (step == JsonScanner::Step::kBroken || step == JsonScanner::Step::kDoneBefore)
      return std::nullopt;
    if (step == JsonScanner::Step::kDone && i + 1 < text.size()) return std::nullopt;
    append_scanned(text[i], in_string, out);
  }
  if (!scanner.whole()) return std::nullopt;
  return out;
}

}  // namespace strata
