#include "text/template/lexer.h"

#include <charconv>
#include <cmath>

#include "text/template/error.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

// One line break is one \n, and the last one of the file is dropped.
std::string normalize(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      if (i + 1 < source.size() && source[i + 1] == '\n') continue;
      out.push_back('\n');
    } else {
      out.push_back(source[i]);
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_decimal(char c) { return c >= '0' && c <= '9'; }
bool continues_name(char c) { return starts_name(c) || is_decimal(c); }

std::string_view without_trailing_space(std::string_view text) {
  while (!text.empty()) {
    const std::size_t last = previous_code_point(text, text.size());
    if (!is_space(code_point_at(text, last).value)) break;
    text = text.substr(0, last);
  }
  return text;
}

bool all_space(std::string_view text) { return without_trailing_space(text).empty(); }

class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(source) {}
  std::vector<Token> run();

 private:
  [[noreturn]] void fail_here(std::string message) const {
    throw TemplateError{.message = std::move(message), .line = line_};
  }
  bool at(std::string_view text) const { return source_.substr(at_).starts_with(text); }
  void advance(std::size_t bytes);
  void skip_space();
  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, std::move(text), line_}); }

  void text_before(std::size_t tag);
  void comment();
  bool raw_block();
  void tag(TokenKind open, TokenKind close, std::string_view closing);
  bool tag_end(TokenKind close, std::string_view closing);
  void finish_tag(std::string_view closing, bool trims_line);
  void expression_token();
  void number();
  void radix_number(int radix);
  void string_literal();
  void escape(std::string& out);
  void code_point_escape(std::string& out, std::size_t digits);
  void operator_token();

  std::string_view source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;  // nothing was kept of the current line so far
  std::string brackets_;    // open ones of the current tag
  std::vector<Token> tokens_;
};

void Lexer::advance(std::size_t bytes) {
  for (const char c : source_.substr(at_, bytes)) line_ += c == '\n' ? 1 : 0;
  at_ += bytes;
}

void Lexer::skip_space() {
  while (at_ < source_.size()) {
    const CodePoint next = code_point_at(source_, at_);
    if (!is_space(next.value)) return;
    advance(next.bytes);
  }
}

std::vector<Token> Lexer::run() {
  while (at_ < source_.size()) {
    std::size_t open = at_;
    while ((open = source_.find('{', open)) != std::string_view::npos) {
      const char next = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') break;
      ++open;
    }
    if (open == std::string_view::npos) {
      push(TokenKind::kText, std::string(source_.substr(at_)));
      break;
    }
    text_before(open);
    if (at("{#")) {
      comment();
    } else if (at("{{")) {
      tag(TokenKind::kOutput, TokenKind::kOutputEnd, "}}");
    } else if (!raw_block()) {
      tag(TokenKind::kBlock, TokenKind::kBlockEnd, "%}");
    }
  }
  push(TokenKind::kEnd, "");
  return std::move(tokens_);
}

// Emits the text up to the tag at `open`, stripped as the tag's sign asks.
void Lexer::text_before(std::size_t open) {
  std::string_view text = source_.substr(at_, open - at_);
  const char sign = open + 2 < source_.size() ? source_[open + 2] : '\0';
  if (sign == '-') {
    text = without_trailing_space(text);
  } else if (sign != '+' && source_[open + 1] != '{') {
    const std::size_t newline = text.rfind('\n');
    const bool has_line_start = newline != std::string_view::npos || line_start_;
    const std::size_t start = newline == std::string_view::npos ? 0 : newline + 1;
    if (has_line_start && all_space(text.substr(start))) text = text.substr(0, start);
  }
  if (!text.empty()) push(TokenKind::kText, std::string(text));
  advance(open - at_);
}

void Lexer::comment() {
  const bool opens_signed = at("{#-") || at("{#+");
  const std::size_t body = at_ + (opens_signed ? 3 : 2);
  const std::size_t end = source_.find("#}", body);
  if (end == std::string_view::npos) fail_here("a comment is not closed: missing '#}}'");
  const char sign = end > body ? source_[end - 1] : '\0';
  advance(end - at_);
  if (sign == '-') {
    advance(2);
    skip_space();
    line_start_ = source_[at_ - 1] == '\n';
  } else {
    finish_tag("#}", sign != '+');
  }
}

// Past the closing delimiter at the current position, and the line break that follows it.
void Lexer::finish_tag(std::string_view closing, bool trims_line) {
  advance(closing.size());
  line_start_ = trims_line && at("\n");
  if (line_start_) advance(1);
}

bool Lexer::raw_block() {
  const std::size_t saved = at_;
  const int saved_line = line_;
  advance(2);
  if (at("-") || at("+")) advance(1);
  skip_space();
  const bool named = at("raw");
  if (named) advance(3);
  skip_space();
  const bool strips = at("-%}");
  if (!named || (!strips && !at("%}"))) {
    at_ = saved;
    line_ = saved_line;
    return false;
  }
  advance(strips ? 3 : 2);
  if (strips) skip_space();
  line_start_ = source_[at_ - 1] == '\n';
  for (std::size_t open = at_; (open = source_.find("{%", open)) != std::string_view::npos;
       ++open) {
    std::size_t end = open + 2;
    if (end < source_.size() && (source_[end] == '-' || source_[end] == '+')) ++end;
    while (end < source_.size() && is_space(code_point_at(source_, end).value))
      end += code_point_at(source_, end).bytes;
    if (!source_.substr(end).starts_with("endraw")) continue;
    text_before(open);
    advance(end + 6 - open);
    skip_space();
    brackets_.clear();
    if (!tag_end(TokenKind::kBlockEnd, "%}")) fail_here("the endraw tag is not closed");
    tokens_.pop_back();
    return true;
  }
  fail_here("a raw block is not closed: missing endraw");
}

// Consumes the end of a tag where it is here.
bool Lexer::tag_end(TokenKind close, std::string_view closing) {
  if (!brackets_.empty()) return false;
  const bool signed_end =
      (at("-") || (at("+") && closing == "%}")) && source_.substr(at_ + 1).starts_with(closing);
  if (!signed_end && !at(closing)) return false;
  push(close, "");
  if (!signed_end) {
    finish_tag(closing, closing == "%}");
  } else if (at("-")) {
    advance(1 + closing.size());
    skip_space();
    line_start_ = source_[at_ - 1] == '\n';
  } else {
    advance(1);
    finish_tag(closing, false);
  }
  return true;
}

void Lexer::tag(TokenKind open, TokenKind close, std::string_view closing) {
  push(open, "");
  const int first_line = line_;
  advance(2);
  if (at("-") || at("+")) advance(1);
  brackets_.clear();
  while (true) {
    skip_space();
    if (at_ >= source_.size()) {
      line_ = first_line;
      fail_here(fmt::format("a tag is not closed: missing '{}'", closing));
    }
    if (tag_end(close, closing)) return;
    expression_token();
  }
}

void Lexer::expression_token() {
  const char c = source_[at_];
  if (c == '"' || c == '\'') return string_literal();
  if (is_decimal(c)) return number();
  if (!starts_name(c)) return operator_token();
  std::size_t end = at_;
  while (end < source_.size() && continues_name(source_[end])) ++end;
  push(TokenKind::kName, std::string(source_.substr(at_, end - at_)));
  advance(end - at_);
}

void Lexer::radix_number(int radix) {
  std::string digits;
  std::size_t end = at_ + 2;
  for (; end < source_.size() && continues_name(source_[end]); ++end) {
    if (source_[end] != '_') digits.push_back(source_[end]);
  }
  std::int64_t value = 0;
  const auto [stop, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, radix);
  if (error != std::errc() || stop != digits.data() + digits.size())
    fail_here("a number is malformed or too large");
  push(TokenKind::kInteger, std::string(source_.substr(at_, end - at_)));
  tokens_.back().integer = value;
  advance(end - at_);
}

void Lexer::number() {
  if (at("0x") || at("0X")) return radix_number(16);
  if (at("0o") || at("0O")) return radix_number(8);
  if (at("0b") || at("0B")) return radix_number(2);
  std::string digits;
  std::size_t end = at_;
  const auto take_digits = [&] {
    for (; end < source_.size(); ++end) {
      const bool joins =
          source_[end] == '_' && end + 1 < source_.size() && is_decimal(source_[end + 1]);
      if (!is_decimal(source_[end]) && !joins) return;
      if (!joins) digits.push_back(source_[end]);
    }
  };
  const auto digit_at = [&](std::size_t i) { return i < source_.size() && is_decimal(source_[i]); };
  take_digits();
  bool whole = true;
  const bool after_dot = at_ > 0 && source_[at_ - 1] == '.';
  if (!after_dot && end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
    whole = false;
    digits.push_back(source_[end++]);
    take_digits();
  }
  if (!after_dot && end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
    const bool has_sign =
        end + 1 < source_.size() && (source_[end + 1] == '+' || source_[end + 1] == '-');
    if (digit_at(end + 1 + (has_sign ? 1 : 0))) {
      whole = false;
      digits.append("e").append(source_.substr(end + 1, has_sign ? 1 : 0));
      end += has_sign ? 2 : 1;
      take_digits();
    }
  }
  push(whole ? TokenKind::kInteger : TokenKind::kFloat, digits);
  Token& token = tokens_.back();
  const char* const last = digits.data() + digits.size();
  const std::errc error = whole ? std::from_chars(digits.data(), last, token.integer).ec
                                : std::from_chars(digits.data(), last, token.real).ec;
  if (error != std::errc() && whole) fail_here(fmt::format("the number {} is too large", digits));
  if (error != std::errc()) token.real = digits.find("e-") == std::string::npos ? HUGE_VAL : 0.0;
  advance(end - at_);
}

void Lexer::string_literal() {
  const char quote = source_[at_];
  const int first_line = line_;
  std::string out;
  advance(1);
  while (at_ < source_.size() && source_[at_] != quote) {
    if (source_[at_] == '\\' && at_ + 1 < source_.size()) {
      escape(out);
    } else {
      out.push_back(source_[at_]);
      advance(1);
    }
  }
  if (at_ >= source_.size()) {
    line_ = first_line;
    fail_here("a string is not closed");
  }
  advance(1);
  tokens_.push_back({TokenKind::kString, std::move(out), first_line});
}

// One escape of a Python string; unknown ones stay as they are.
void Lexer::escape(std::string& out) {
  const char c = source_[at_ + 1];
  constexpr std::string_view kNames = "abfnrtv\\'\"\n";
  constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"";
  if (const std::size_t known = kNames.find(c); known != std::string_view::npos) {
    if (known < kValues.size()) out.push_back(kValues[known]);
    return advance(2);
  }
  if (c == 'x') return code_point_escape(out, 2);
  if (c == 'u') return code_point_escape(out, 4);
  if (c == 'U') return code_point_escape(out, 8);
  if (c >= '0' && c <= '7') {
    char32_t value = 0;
    std::size_t used = 1;
    for (; used < 4 && at_ + used < source_.size(); ++used) {
      const char digit = source_[at_ + used];
      if (digit < '0' || digit > '7') break;
      value = value * 8 + static_cast<char32_t>(digit - '0');
    }
    append_utf8(out, value);
    return advance(used);
  }
  out.push_back('\\');
  advance(1);
}

void Lexer::code_point_escape(std::string& out, std::size_t digits) {
  const std::string_view hex = source_.substr(at_ + 2, digits);
  std::uint32_t value = 0;
  const auto [stop, error] = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (hex.size() < digits || error != std::errc() || stop != hex.data() + digits ||
      value > 0x10FFFF || surrogate)
    fail_here("a string has an escape that names no character");
  append_utf8(out, value);
  advance(2 + digits);
}

void Lexer::operator_token() {
  constexpr std::string_view kLong[] = {"//", "**", "==", "!=", "<=", ">="};
  constexpr std::string_view kShort = "+-*/%~<>=.:,|()[]{};";
  for (const std::string_view op : kLong) {
    if (!at(op)) continue;
    push(TokenKind::kOperator, std::string(op));
    return advance(op.size());
  }
  const char c = source_[at_];
  if (kShort.find(c) == std::string_view::npos)
    fail_here(fmt::format("unexpected character '{}'", c));
  constexpr std::string_view kOpening = "([{";
  constexpr std::string_view kClosing = ")]}";
  if (kOpening.find(c) != std::string_view::npos) brackets_.push_back(c);
  if (const std::size_t kind = kClosing.find(c); kind != std::string_view::npos) {
    if (brackets_.empty() || brackets_.back() != kOpening[kind])
      fail_here(fmt::format("unexpected '{}'", c));
    brackets_.pop_back();
  }
  push(TokenKind::kOperator, std::string(1, c));
  advance(1);
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  const std::string normalized = normalize(source);
  return Lexer(normalized).run();
}

}  // namespace strata::jinja
