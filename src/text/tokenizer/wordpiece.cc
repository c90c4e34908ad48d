#include "text/tokenizer/wordpiece.h"

#include "base/utf8.h"
#include "text/tokenizer/escaped_space.h"
#include "text/tokenizer/unicode.h"

namespace strata {
namespace {

constexpr std::size_t kMaxWordCharacters = 100;
constexpr char32_t kReplacement = 0xfffd;
constexpr char32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two

// What cleaning drops; the rest of the control characters are white space.
bool is_dropped(char32_t c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  return c == kReplacement || is_other(c);
}

// As they stand in a word.
std::vector<PrefixTrie::Entry> tokens_of(const Vocabulary& vocabulary, bool start_words) {
  std::vector<PrefixTrie::Entry> entries;
  for (PrefixTrie::Entry entry : ordinary_tokens(vocabulary, &Token::text)) {
    if (entry.key.starts_with(kEscapedSpace) != start_words) continue;
    if (start_words) entry.key.remove_prefix(kEscapedSpace.size());
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace

struct WordPieceModel::Word {
  std::string text;
  std::size_t characters = 0;

  void add(char32_t c) {
    append_utf8(c, text);
    ++characters;
  }
  void clear() {
    text.clear();
    characters = 0;
  }
};

WordPieceModel::WordPieceModel(const Vocabulary& vocabulary)
    : starts_(tokens_of(vocabulary, true)),
      continuations_(tokens_of(vocabulary, false)),
      fallback_(vocabulary) {}

Result<std::unique_ptr<const TextModel>> WordPieceModel::create(const Metadata& metadata,
                                                                const Vocabulary& vocabulary) {
  std::unique_ptr<WordPieceModel> model(new WordPieceModel(vocabulary));
  STRATA_ASSIGN(const std::optional<bool> lower_case,
                metadata.optional_bool("tokenizer.ggml.normalizer.lowercase"));
  STRATA_ASSIGN(const std::optional<bool> strip_accents,
                metadata.optional_bool("tokenizer.ggml.normalizer.strip_accents"));
  model->lower_case_ = lower_case.value_or(true);
  model->strip_accents_ = strip_accents.value_or(model->lower_case_);
  return std::unique_ptr<const TextModel>(std::move(model));
}

// Marks that are left keep their order: of those, canonical ordering moves next to none.
std::u32string WordPieceModel::normalize(char32_t c) const {
  if (lower_case_ && !strip_accents_ && c == kCapitalIWithDot) return U"i\u0307";
  std::u32string normal = strip_accents_ ? without_accents(c) : std::u32string{c};
  if (lower_case_)
    for (char32_t& letter : normal) letter = to_lower(letter);
  return normal;
}

Status WordPieceModel::encode(std::string_view text, bool /*starts_segment*/,
                              EncodeScratch& scratch, std::vector<TokenId>& out) const {
  Word word;
  const auto add_alone = [&](char32_t c) -> Status {
    STRATA_TRY(finish(word, scratch.cache, out));
    word.add(c);
    return finish(word, scratch.cache, out);
  };
  while (!text.empty()) {
    const Utf8Prefix prefix = utf8_prefix(text);
    text.remove_prefix(prefix.bytes);
    const char32_t c = prefix.character;
    if (prefix.kind != Utf8Prefix::Kind::kCharacter || is_dropped(c)) continue;
    const bool is_alone = is_chinese_character(c);
    if (is_alone) STRATA_TRY(finish(word, scratch.cache, out));
    for (const char32_t letter : normalize(c)) {
      if (is_white_space(letter))
        STRATA_TRY(finish(word, scratch.cache, out));
      else if (is_punctuation(letter))
        STRATA_TRY(add_alone(letter));
      else
        word.add(letter);
    }
    if (is_alone) STRATA_TRY(finish(word, scratch.cache, out));
  }
  return finish(word, scratch.cache, out);
}

// Appends the tokens of the word, if there is one, and starts the next.
Status WordPieceModel::finish(Word& word, PieceCache& cache, std::vector<TokenId>& out) const {
  if (word.characters == 0) return {};
  if (!cache.append(word.text, out)) {
    const std::size_t before = out.size();
    STRATA_TRY(encode_word(word, out));
    cache.insert(word.text, std::span(out).subspan(before));
  }
  word.clear();
  return {};
}

Status WordPieceModel::encode_word(const Word& word, std::vector<TokenId>& out) const {
  const std::size_t before = out.size();
  std::string_view rest = word.text;
  while (!rest.empty() && word.characters <= kMaxWordCharacters) {
    const PrefixTrie& tokens = rest.size() == word.text.size() ? starts_ : continuations_;
    const PrefixTrie::Entry token = tokens.longest_prefix(rest);
    if (token.id == kNoToken) break;
    out.push_back(token.id);
    rest.remove_prefix(token.key.size());
  }
  if (rest.empty()) return {};
  out.resize(before);
  return fallback_.append(word.text, out);
}

}  // namespace strata
