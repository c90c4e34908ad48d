#include <optional>
#include <unordered_map>

#include "base/printable.h"
#include "base/utf8.h"
#include "grammar/grammar.h"

namespace strata {
namespace {

constexpr std::size_t kMostGroups = 100;  // of groups

bool is_name(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' ||
         c == '_';
}

std::optional<char32_t> hex_digit(char c) {
  if ('0' <= c && c <= '9') return c - '0';
  if ('a' <= c && c <= 'f') return c - 'a' + 10;
  if ('A' <= c && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

class GbnfParser {
 public:
  using Id = GrammarBuilder::Id;
  using RuleId = GrammarBuilder::RuleId;

  explicit GbnfParser(std::string_view text) : text_(text) {}

  Result<Grammar> parse() {
    if (text_.size() > GrammarLimits::kText)
      return resource_exhausted("the grammar has more than {} bytes", GrammarLimits::kText);
    if (const std::size_t valid = utf8_valid_bytes(text_); valid != text_.size())
      return error(valid, "this is not UTF-8");
    skip(true);
    while (at_ < text_.size()) STRATA_TRY(parse_rule());
    for (const auto& [name, rule] : rules_)
      if (!rule.defined)
        return error(rule.position, fmt::format("there is no rule \"{}\"", printable(name, 64)));
    const auto root = rules_.find("root");
    if (root == rules_.end())
      return invalid_argument("the grammar has no rule \"root\", which is the whole answer");
    return builder_.compile(root->second.id);
  }

 private:
  struct Rule {
    RuleId id = 0;
    std::size_t position = 0;  // where it is first named
    bool defined = false;
  };

  // "line L, column C of the grammar"; fast for positions that ascend.
  std::string place(std::size_t position) {
    if (position < place_.position) place_ = {};
    for (; place_.position < position; ++place_.position) {
      const char c = text_[place_.position];
      place_.line += c == '\n';
      place_.column = c == '\n' ? 1 : place_.column + ((c & 0xc0) != 0x80);
    }
    return fmt::format("line {}, column {} of the grammar", place_.line, place_.column);
  }
  Status error(std::size_t position, std::string_view what) {
    return invalid_argument("{}: {}", place(position), what);
  }
  Status error(std::string_view what) { return error(at_, what); }

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  // Blanks and comments, and the ends of lines where `lines` is set.
  void skip(bool lines) {
    while (!at_end()) {
      const char c = peek();
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::string_view take_name() {
    const std::size_t start = at_;
    while (is_name(peek())) ++at_;
    return text_.substr(start, at_ - start);
  }

  Rule& rule_named(std::string_view name, std::size_t position) {
    auto [found, is_new] = rules_.try_emplace(std::string(name));
    if (is_new) found->second = {builder_.add_rule(std::string(name)), position, false};
    return found->second;
  }

  Status parse_rule() {
    const std::size_t start = at_;
    const std::string_view name = take_name();
    if (name.empty()) return error("expected the name of a rule");
    skip(false);
    if (!take("::=")) return error("expected ::= after the name of a rule");
    Rule& rule = rule_named(name, start);
    if (rule.defined)
      return error(start, fmt::format("the rule \"{}\" is defined twice", printable(name, 64)));
    rule.defined = true;
    const RuleId id = rule.id;
    builder_.rename(id, fmt::format("{}: the rule \"{}\"", place(start), printable(name, 64)));
    skip(true);
    STRATA_ASSIGN(const Id expression, parse_choice(0));
    builder_.define(id, expression);
    if (!at_end() && peek() != '\n' && peek() != '\r')
      return error("expected a literal, [characters], a name, ( or the end of the line");
    skip(true);
    return {};
  }

  Result<Id> parse_choice(std::size_t nesting) {
    if (nesting > kMostGroups) return error(fmt::format("groups nest deeper than {}", kMostGroups));
    std::vector<Id> alternatives;
    do {
      skip(true);
      STRATA_ASSIGN(const Id sequence, parse_sequence(nesting));
      alternatives.push_back(sequence);
      // A line that starts with | goes on with the rule.
      const std::size_t end = at_;
      skip(true);
      if (peek() != '|' && nesting == 0) at_ = end;
    } while (take("|"));
    return builder_.choice(std::move(alternatives));
  }

  // In a group, lines do not end it.
  Result<Id> parse_sequence(std::size_t nesting) {
    std::vector<Id> parts;
    while (true) {
      const std::size_t start = at_;
      const char c = peek();
      Id item = builder_.empty();
      if (c == '"') {
        STRATA_ASSIGN(item, parse_literal());
      } else if (c == '[') {
        STRATA_ASSIGN(item, parse_class());
      } else if (c == '.') {
        ++at_;
        item = builder_.characters(CharClass::all());
      } else if (c == '(') {
        ++at_;
        STRATA_ASSIGN(item, parse_choice(nesting + 1));
        if (!take(")")) return error("expected ) or |");
      } else if (is_name(c)) {
        const std::string_view name = take_name();
        if (const std::size_t after = at_; skip(false), take("::=")) {
          if (nesting > 0) return error(start, "a rule begins inside a group that is not closed");
          at_ = start;
          return error(after, "expected the rule before to end with its line");
        }
        item = builder_.rule(rule_named(name, start).id);
      } else {
        return builder_.sequence(std::move(parts));
      }
      skip(nesting > 0);
      STRATA_ASSIGN(item, parse_repetitions(item, nesting));
      parts.push_back(item);
    }
  }

  Result<Id> parse_repetitions(Id item, std::size_t nesting) {
    for (;; skip(nesting > 0)) {
      if (take("*")) {
        item = builder_.repeat(item, 0, kUnbounded);
      } else if (take("+")) {
        item = builder_.repeat(item, 1, kUnbounded);
      } else if (take("?")) {
        item = builder_.optional(item);
      } else if (peek() == '{') {
        STRATA_ASSIGN(item, parse_count(item));
      } else {
        return item;
      }
      if (builder_.nesting_of(item) >= GrammarLimits::kNesting)
        return error("repetitions nest too deep");
    }
  }

  Result<Id> parse_count(Id item) {
    const std::size_t start = at_++;
    skip(false);
    STRATA_ASSIGN(const std::uint32_t min, parse_number());
    std::uint32_t max = min;
    skip(false);
    if (take(",")) {
      skip(false);
      max = kUnbounded;
      if (peek() != '}') {
        STRATA_ASSIGN(max, parse_number());
      }
      skip(false);
    }
    if (!take("}")) return error("expected } after the numbers of a repetition");
    if (max < min) return error(start, fmt::format("at least {} and at most {} times", min, max));
    return builder_.repeat(item, min, max);
  }

  Result<std::uint32_t> parse_number() {
    std::uint64_t value = 0;
    const std::size_t start = at_;
    for (; '0' <= peek() && peek() <= '9'; ++at_) {
      value = value * 10 + static_cast<std::uint64_t>(peek() - '0');
      if (value > GrammarLimits::kRepetitions)
        return error(start, fmt::format("more than {} times", GrammarLimits::kRepetitions));
    }
    if (at_ == start) return error("expected a number");
    return static_cast<std::uint32_t>(value);
  }

  Result<Id> parse_literal() {
    const std::size_t start = at_++;
    std::string bytes;
    while (!take("\"")) {
      if (at_end() || peek() == '\n') return error(start, "this literal has no end");
      STRATA_ASSIGN(const char32_t character, parse_character());
      append_utf8(character, bytes);
    }
    return builder_.literal(bytes);
  }

  Result<Id> parse_class() {
    const std::size_t start = at_++;
    const bool negated = take("^");
    std::vector<CharRange> ranges;
    while (!take("]")) {
      if (at_end() || peek() == '\n') return error(start, "these [characters] have no end");
      const std::size_t first_at = at_;
      STRATA_ASSIGN(const char32_t first, parse_character());
      char32_t last = first;
      if (peek() == '-' && peek(1) != ']') {
        ++at_;
        if (at_end() || peek() == '\n') return error(start, "these [characters] have no end");
        STRATA_ASSIGN(last, parse_character());
        if (last < first) return error(first_at, "this range ends before it starts");
      }
      ranges.push_back({first, last});
    }
    const CharClass characters(std::move(ranges));
    return builder_.characters(negated ? characters.negated() : characters);
  }

  // One character, which may be escaped. REQUIRES: not at the end.
  Result<char32_t> parse_character() {
    if (peek() != '\\') {
      const Utf8Prefix prefix = utf8_prefix(text_.substr(at_));
      at_ += prefix.bytes;
      return prefix.character;
    }
    const std::size_t start = at_++;
    const char c = peek();
    ++at_;
    switch (c) {
      case 'n': return U'\n';
      case 'r': return U'\r';
      case 't': return U'\t';
      case 'x': return parse_hex(start, 2);
      case 'u': return parse_hex(start, 4);
      case 'U': return parse_hex(start, 8);
      case '\\':
      case '"':
      case '[':
      case ']':
      case '-':
      case '^': return static_cast<char32_t>(c);
      default:
        return error(start, "this escape is none of \\n \\r \\t \\\\ \\\" \\[ \\] \\x \\u \\U");
    }
  }

  Result<char32_t> parse_hex(std::size_t start, std::size_t digits) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < digits; ++i, ++at_) {
      const auto digit = hex_digit(peek());
      if (!digit) return error(start, fmt::format("expected {} hexadecimal digits", digits));
      value = value * 16 + *digit;
    }
    if (value > 0x10ffff || (0xd800 <= value && value <= 0xdfff))
      return error(start, "this is no character of Unicode");
    return static_cast<char32_t>(value);
  }

  struct Place {
    std::size_t position = 0;
    std::size_t line = 1;
    std::size_t column = 1;
  };

  std::string_view text_;
  std::size_t at_ = 0;
  Place place_;
  GrammarBuilder builder_;
  std::unordered_map<std::string, Rule> rules_;
};

}  // namespace

Result<Grammar> parse_gbnf(std::string_view text) { return GbnfParser(text).parse(); }

}  // namespace strata
