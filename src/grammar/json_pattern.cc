#include "grammar/json_pattern.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/utf8.h"

namespace strata {
namespace {

using Id = GrammarBuilder::Id;

constexpr std::size_t kMostPatternLength = 10'000;
constexpr std::size_t kMostPatternNesting = 50;
constexpr std::uint64_t kMostPatternRounds = 1'000'000;

CharClass digit_class() { return CharClass({{'0', '9'}}); }
CharClass word_class() { return CharClass({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}); }
CharClass space_class() {
  return CharClass({{'\t', '\r'},
                    {' ', ' '},
                    {0xa0, 0xa0},
                    {0x1680, 0x1680},
                    {0x2000, 0x200a},
                    {0x2028, 0x2029},
                    {0x202f, 0x202f},
                    {0x205f, 0x205f},
                    {0x3000, 0x3000},
                    {0xfeff, 0xfeff}});
}
CharClass line_end_class() { return CharClass({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

struct Lengths {
  std::uint64_t min = 0;
  std::uint64_t max = 0;  // kUnbounded and more: no limit
};

Lengths sum(Lengths a, Lengths b) { return {a.min + b.min, a.max + b.max}; }
Lengths product(Lengths a, std::uint32_t min, std::uint32_t max) {
  const bool endless = max == kUnbounded || a.max >= kUnbounded;
  return {std::min<std::uint64_t>(a.min * min, kUnbounded), a.max == 0 || max == 0 ? 0
                                                            : endless              ? kUnbounded
                                                                                   : a.max * max};
}

// An expression that may be repeated.
struct Piece {
  Id unit = 0;
  Lengths length;  // of the unit
  std::uint32_t min = 1;
  std::uint32_t max = 1;

  Lengths total() const { return product(length, min, max); }
};

// Expressions one behind the other.
struct Run {
  std::vector<Piece> pieces;
  bool from_start = false;  // begins with ^
  bool to_end = false;      // ends with $

  Lengths total() const {
    Lengths out;
    for (const Piece& piece : pieces) out = sum(out, piece.total());
    return out;
  }
};

class PatternParser {
 public:
  explicit PatternParser(JsonText& json) : builder_(json.builder()), json_(json) {}

  Result<Id> parse(std::string_view pattern, LengthLimits limits) {
    if (utf8_valid_bytes(pattern) != pattern.size())
      return invalid_argument("the pattern is not UTF-8");
    for (std::size_t i = 0; i < pattern.size();) {
      const Utf8Prefix prefix = utf8_prefix(pattern.substr(i));
      text_ += prefix.character;
      i += prefix.bytes;
    }
    if (text_.size() > kMostPatternLength)
      return resource_exhausted("the pattern has more than {} characters", kMostPatternLength);
    STRATA_ASSIGN(std::vector<Run> runs, parse_runs(0));
    if (at_ < text_.size()) return error("the ) closes nothing");
    std::vector<Id> ways;
    for (Run& run : runs) {
      const Piece any{json_.character(), {1, 1}, 0, kUnbounded};
      if (!run.from_start) run.pieces.insert(run.pieces.begin(), any);
      if (!run.to_end) run.pieces.push_back(any);
      STRATA_ASSIGN(const bool possible, limit(run, limits));
      if (possible) ways.push_back(expression(run));
    }
    if (ways.empty())
      return invalid_argument("no string that matches the pattern has so many characters");
    return json_.quoted(builder_.choice(std::move(ways)));
  }

 private:
  Status error(std::string_view what) const {
    return invalid_argument("the pattern, character {}: {}", at_ + 1, what);
  }
  Status no_support(std::string_view what) const {
    return unsupported("the pattern, character {}: {} are not supported", at_ + 1, what);
  }

  char32_t peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : U'\0';
  }
  bool at_end() const { return at_ >= text_.size(); }
  bool take(std::u32string_view expected) {
    if (!std::u32string_view(text_).substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  Id expression(const Run& run) {
    std::vector<Id> parts;
    for (const Piece& piece : run.pieces)
      parts.push_back(builder_.repeat(piece.unit, piece.min, piece.max));
    return builder_.sequence(std::move(parts));
  }

  // Narrows the one piece of changing length. False where no length fits.
  Result<bool> limit(Run& run, LengthLimits limits) const {
    const Lengths total = run.total();
    if (total.min > limits.max || total.max < limits.min) return false;
    const bool ends = total.max < kUnbounded;
    if (total.min >= limits.min && (limits.max == kUnbounded || (ends && total.max <= limits.max)))
      return true;
    const auto changes = [](const Piece& piece) { return piece.total().min != piece.total().max; };
    const auto piece = std::ranges::find_if(run.pieces, changes);
    if (piece == run.pieces.end()) return false;
    const bool one_only = std::find_if(piece + 1, run.pieces.end(), changes) == run.pieces.end();
    if (!one_only || piece->length.min != 1 || piece->length.max != 1)
      return unsupported(
          "minLength or maxLength together with this pattern, which has more than one part of "
          "changing length: give the lengths in the pattern");
    const auto others = static_cast<std::uint32_t>(total.min - piece->min);
    piece->min = std::max(piece->min, limits.min - std::min(limits.min, others));
    if (limits.max != kUnbounded) piece->max = std::min(piece->max, limits.max - others);
    return true;
  }

  Result<std::vector<Run>> parse_runs(std::size_t nesting) {
    if (nesting > kMostPatternNesting)
      return resource_exhausted("the pattern nests deeper than {}", kMostPatternNesting);
    std::vector<Run> runs;
    do {
      STRATA_ASSIGN(Run run, parse_run(nesting));
      runs.push_back(std::move(run));
    } while (take(U"|"));
    return runs;
  }

  Result<Run> parse_run(std::size_t nesting) {
    Run run;
    run.from_start = nesting == 0 && take(U"^");
    while (!at_end() && peek() != U'|' && peek() != U')') {
      if (peek() == U'^') return no_support("anchors but at the start of an alternative");
      if (peek() == U'$') {
        const bool last = at_ + 1 == text_.size() || peek(1) == U'|';
        if (nesting > 0 || !last) return no_support("anchors but at the end of an alternative");
        ++at_;
        run.to_end = true;
        break;
      }
      STRATA_TRY(builder_.status());
      STRATA_ASSIGN(Piece piece, parse_atom(nesting));
      STRATA_ASSIGN(const bool repeated, parse_quantifier(piece));
      if (repeated && is_quantifier()) return error("a repetition of a repetition");
      run.pieces.push_back(piece);
    }
    return run;
  }

  Piece one_of(const CharClass& characters) { return {json_.character(characters), {1, 1}, 1, 1}; }

  Result<Piece> parse_atom(std::size_t nesting) {
    const char32_t c = peek();
    if (c == U'(') return parse_group(nesting);
    if (c == U'[') return parse_class();
    if (c == U'\\') {
      STRATA_ASSIGN(const CharClass escaped, parse_escape(false));
      return one_of(escaped);
    }
    if (c == U'*' || c == U'+' || c == U'?') return error("there is nothing to repeat");
    if (c == U'{' && is_quantifier()) return error("there is nothing to repeat");
    ++at_;
    if (c == U'.') return one_of(line_end_class().negated());
    return one_of(CharClass({{c, c}}));
  }

  Result<Piece> parse_group(std::size_t nesting) {
    if (take(U"(?<") && peek() != U'=' && peek() != U'!') {
      while (!at_end() && peek() != U'>') ++at_;
      if (!take(U">")) return error("expected > after the name of a group");
    } else if (!take(U"(?:")) {
      if (text_[at_] != U'(' || peek(1) == U'?') return no_support("(?...) other than (?:...)");
      ++at_;
    }
    STRATA_ASSIGN(const std::vector<Run> runs, parse_runs(nesting + 1));
    if (!take(U")")) return error("a group has no end");
    std::vector<Id> ways;
    Lengths length = runs[0].total();
    for (const Run& run : runs) {
      length = {std::min(length.min, run.total().min), std::max(length.max, run.total().max)};
      ways.push_back(expression(run));
    }
    return Piece{builder_.choice(std::move(ways)), length, 1, 1};
  }

  Result<Piece> parse_class() {
    ++at_;
    const bool negated = take(U"^");
    std::vector<CharRange> ranges;
    while (!take(U"]")) {
      if (at_end()) return error("[ has no end");
      STRATA_ASSIGN(const CharClass first, parse_class_part());
      if (peek() != U'-' || peek(1) == U']' || at_ + 1 >= text_.size()) {
        ranges.insert(ranges.end(), first.ranges().begin(), first.ranges().end());
        continue;
      }
      ++at_;
      STRATA_ASSIGN(const CharClass last, parse_class_part());
      const auto is_one = [](const CharClass& c) {
        return c.ranges().size() == 1 && c.ranges()[0].first == c.ranges()[0].last;
      };
      if (!is_one(first) || !is_one(last) || first.ranges()[0].first > last.ranges()[0].first)
        return error("a range in [ ] has no order");
      ranges.push_back({first.ranges()[0].first, last.ranges()[0].first});
    }
    const CharClass out(std::move(ranges));
    return one_of(negated ? out.negated() : out);
  }

  Result<CharClass> parse_class_part() {
    if (at_end()) return error("[ has no end");
    if (peek() == U'\\') return parse_escape(true);
    const char32_t c = text_[at_++];
    return CharClass({{c, c}});
  }

  Result<CharClass> parse_escape(bool in_class) {
    const char32_t c = peek(1);
    if (at_ + 1 >= text_.size()) return error("\\ stands at the end");
    const auto single = [](char32_t character) { return CharClass({{character, character}}); };
    if (c == U'x' || c == U'u') return parse_hex(c == U'x' ? 2 : 4);
    if (c == U'b' && !in_class) return no_support("borders of words");
    if (U'1' <= c && c <= U'9') return no_support("references to groups");
    at_ += 2;
    switch (c) {
      case U'd': return digit_class();
      case U'D': return digit_class().negated();
      case U'w': return word_class();
      case U'W': return word_class().negated();
      case U's': return space_class();
      case U'S': return space_class().negated();
      case U'n': return single(U'\n');
      case U'r': return single(U'\r');
      case U't': return single(U'\t');
      case U'f': return single(U'\f');
      case U'v': return single(U'\v');
      case U'b': return single(U'\b');
      case U'0': return single(U'\0');
      default: break;
    }
    if (word_class().contains(c)) {
      at_ -= 2;
      return no_support("escapes of other letters");
    }
    return single(c);
  }

  Result<CharClass> parse_hex(std::size_t digits) {
    char32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      constexpr std::u32string_view kDigits = U"0123456789abcdef";
      const char32_t c = peek(2 + i);
      const auto digit = kDigits.find(U'A' <= c && c <= U'F' ? c + 32 : c);
      if (digit == kDigits.npos) return error("expected hexadecimal digits");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (0xd800 <= value && value <= 0xdfff) return no_support("surrogates");
    at_ += 2 + digits;
    return CharClass({{value, value}});
  }

  bool is_quantifier() {
    const std::size_t start = at_;
    Piece ignored;
    const auto found = parse_quantifier(ignored);
    at_ = start;
    return !found.ok() || *found;
  }

  // Whether there was one. A brace that is none stands for itself.
  Result<bool> parse_quantifier(Piece& piece) {
    const std::size_t start = at_;
    if (take(U"*")) {
      piece.min = 0, piece.max = kUnbounded;
    } else if (take(U"+")) {
      piece.max = kUnbounded;
    } else if (take(U"?")) {
      piece.min = 0;
    } else if (take(U"{")) {
      const auto min = take_number();
      std::optional<std::uint64_t> max = min;
      if (min && take(U",")) max = peek() == U'}' ? kUnbounded : take_number();
      if (!min || !max || !take(U"}")) {
        at_ = start;
        return false;
      }
      if (*min > kMostPatternRounds || (*max != kUnbounded && *max > kMostPatternRounds))
        return error("a repetition of more than a million times");
      if (*max < *min) return error("a repetition whose most is below its least");
      piece.min = static_cast<std::uint32_t>(*min);
      piece.max = static_cast<std::uint32_t>(*max);
    } else {
      return false;
    }
    take(U"?");
    return true;
  }

  std::optional<std::uint64_t> take_number() {
    std::optional<std::uint64_t> value;
    for (; U'0' <= peek() && peek() <= U'9'; ++at_)
      value = std::min(value.value_or(0) * 10 + (peek() - U'0'), kMostPatternRounds + 1);
    return value;
  }

  GrammarBuilder& builder_;
  JsonText& json_;
  std::u32string text_;
  std::size_t at_ = 0;
};

// Days as the calendar has them.
constexpr std::string_view kDate =
    R"((?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30))"
    R"(|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26]))"
    R"(|(?:[02468][048]|[13579][26])00)-02-29))";
constexpr std::string_view kTime =
    R"((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))";
constexpr std::string_view kOctet = R"((?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
constexpr std::string_view kLabel = "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
constexpr std::string_view kAtom = "[A-Za-z0-9_+~-]+";

}  // namespace

Result<Id> add_json_pattern(JsonText& json, std::string_view pattern, LengthLimits limits) {
  return PatternParser(json).parse(pattern, limits);
}

std::string pattern_of_format(std::string_view format) {
  if (format == "date") return fmt::format("^{}$", kDate);
  if (format == "time") return fmt::format("^{}$", kTime);
  if (format == "date-time") return fmt::format("^{}T{}$", kDate, kTime);
  if (format == "uuid") return "^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$";
  if (format == "email")
    return fmt::format(R"(^{0}(?:\.{0})*@{1}(?:\.{1}){{1,8}}$)", kAtom, kLabel);
  if (format == "hostname") return fmt::format(R"(^{0}(?:\.{0}){{0,8}}$)", kLabel);
  if (format == "ipv4") return fmt::format(R"(^{0}(?:\.{0}){{3}}$)", kOctet);
  if (format == "ipv6") return "^(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}$";
  if (format == "uri")
    return R"(^[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+$)";
  if (format == "duration")
    return R"(^P(?:\d{1,9}W|\d{1,9}D|\d{1,9}M(?:\d{1,9}D)?|\d{1,9}Y(?:\d{1,9}M(?:\d{1,9}D)?)?)"
           R"(|(?:\d{1,9}D)?T(?:\d{1,9}S|\d{1,9}M(?:\d{1,9}S)?)"
           R"(|\d{1,9}H(?:\d{1,9}M(?:\d{1,9}S)?)?))$)";
  if (format == "password") return R"(^[^\u0000-\u001f]*$)";
  return {};
}

}  // namespace strata
