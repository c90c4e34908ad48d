#include "text/tokenizer/splitter.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <limits>

#include "base/utf8.h"

namespace strata {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Code = std::unique_ptr<pcre2_code, Freer<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>>;

// Unicode's White_Space. PCRE2's own \s also takes U+180E, which no tokenizer does.
constexpr std::string_view kSpaces =
    R"(\t-\r\x20\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

// Writes out \s (anywhere) and \S (outside classes).
std::string expand_white_space(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      const char escaped = pattern[++i];
      if (escaped == 's' && in_class)
        out += kSpaces;
      else if (escaped == 's')
        out += fmt::format("[{}]", kSpaces);
      else if (escaped == 'S')
        out += fmt::format("[^{}]", kSpaces);
      else
        out += {'\\', escaped};
      continue;
    }
    if (c == '[') in_class = true;
    if (c == ']') in_class = false;
    out += c;
  }
  return out;
}

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

Result<Code> compile(std::string_view pattern) {
  const std::string source = expand_white_space(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(),
                          PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr));
  if (code == nullptr)
    return internal_error("the pre-tokenizer's pattern does not compile at {}: {}", offset,
                          pcre2_message(error));
  // Where the system forbids generated code, the interpreter gives the same matches.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

// One thread's means to match.
struct Matcher {
  MatchData data{pcre2_match_data_create(1, nullptr)};
  MatchContext context{pcre2_match_context_create(nullptr)};

  Matcher() {
    // The rules are linear; the default limit would refuse long runs of blanks.
    if (context != nullptr)
      pcre2_set_match_limit(context.get(), std::numeric_limits<std::uint32_t>::max());
  }

  // Sets [begin, end) to the first match from `from` on; false where there is none.
  Result<bool> match(const pcre2_code* code, std::string_view subject, std::size_t from,
                     std::size_t& begin, std::size_t& end) const {
    const auto run = [&](std::uint32_t options) {
      return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from,
                         options, data.get(), context.get());
    };
    int found = run(PCRE2_NO_UTF_CHECK);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) found = run(PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    if (found == PCRE2_ERROR_NOMATCH) return false;
    if (found < 0)
      return resource_exhausted("the text cannot be cut into words: {}", pcre2_message(found));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data.get());
    begin = range[0];
    end = range[1];
    return true;
  }
};

using Pieces = std::vector<std::string_view>;

// Appends `digits` cut into groups of three characters, the first one shorter where need be.
void add_threes(std::string_view digits, Pieces& pieces) {
  std::size_t characters = 0;
  for (const char c : digits)
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++characters;
  std::size_t wanted = characters % 3 == 0 ? 3 : characters % 3;
  while (!digits.empty()) {
    std::size_t bytes = 0;
    for (; wanted > 0; --wanted) bytes += utf8_prefix(digits.substr(bytes)).bytes;
    pieces.push_back(digits.substr(0, bytes));
    digits.remove_prefix(bytes);
    wanted = 3;
  }
}

// Appends the runs of whole characters in `text` and, between them, the runs of other bytes.
void add_valid_and_invalid_runs(std::string_view text, Pieces& pieces) {
  while (!text.empty()) {
    std::size_t bytes = utf8_valid_bytes(text);
    if (bytes == 0)
      while (bytes < text.size() &&
             utf8_prefix(text.substr(bytes)).kind != Utf8Prefix::Kind::kCharacter)
        ++bytes;
    pieces.push_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
}

}  // namespace

struct Splitter::Stage {
  Code code;
  bool threes_from_the_right;

  Status split(const Matcher& matcher, std::string_view piece, Pieces& out) const {
    std::size_t done = 0;
    std::size_t from = 0;
    while (from < piece.size()) {
      std::size_t begin = 0;
      std::size_t end = 0;
      STRATA_ASSIGN(const bool found, matcher.match(code.get(), piece, from, begin, end));
      if (!found) break;
      if (begin == end) {  // an empty match separates nothing
        from = begin + (begin < piece.size() ? utf8_prefix(piece.substr(begin)).bytes : 1);
        continue;
      }
      if (begin > done) out.push_back(piece.substr(done, begin - done));
      if (threes_from_the_right)
        add_threes(piece.substr(begin, end - begin), out);
      else
        out.push_back(piece.substr(begin, end - begin));
      done = from = end;
    }
    if (done < piece.size()) out.push_back(piece.substr(done));
    return {};
  }
};

Splitter::Splitter(std::vector<Stage> stages) : stages_(std::move(stages)) {}
Splitter::Splitter(Splitter&&) noexcept = default;
Splitter& Splitter::operator=(Splitter&&) noexcept = default;
Splitter::~Splitter() = default;

Result<Splitter> Splitter::create(std::span<const SplitStage> stages) {
  std::vector<Stage> compiled;
  for (const SplitStage& stage : stages) {
    STRATA_ASSIGN(Code code, compile(stage.pattern));
    compiled.push_back({std::move(code), stage.threes_from_the_right});
  }
  return Splitter(std::move(compiled));
}

Status Splitter::split(std::string_view text, std::vector<std::string_view>& pieces) const {
  const Matcher matcher;
  if (matcher.data == nullptr || matcher.context == nullptr)
    return resource_exhausted("no memory is left to cut the text into words");
  pieces.clear();
  add_valid_and_invalid_runs(text, pieces);
  Pieces next;
  for (const Stage& stage : stages_) {
    next.clear();
    for (const std::string_view piece : pieces) {
      if (utf8_prefix(piece).kind == Utf8Prefix::Kind::kCharacter) {
        STRATA_TRY(stage.split(matcher, piece, next));
      } else {
        next.push_back(piece);
      }
    }
    pieces.swap(next);
  }
  return {};
}

}  // namespace strata
