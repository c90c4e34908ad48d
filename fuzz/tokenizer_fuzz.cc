// Any text, cut into trusted and untrusted spans, against small vocabularies of every kind; and
// vocabularies that the input itself makes up.
#include <array>

#include "text/tokenizer/detokenizer.h"
#include "text/tokenizer/pre_tokenizers.h"
#include "text/tokenizer/test_support.h"

namespace {

using namespace strata;
using testing::VocabularyFile;

// A vocabulary with merges, control and user-defined tokens for the rules of that name.
VocabularyFile rich_bpe(std::string_view rules) {
  VocabularyFile file = testing::byte_vocabulary();
  file.pre = rules;
  for (const auto& [left, right] : std::initializer_list<std::pair<const char*, const char*>>{
           {"a", "a"}, {"aa", "aa"}, {"a", "b"}, {"\u0120", "a"}, {"\u0120", "\u0120"}})
    file.add_merge(left, right);
  file.add_control("<|a|>");
  file.add_control("<|a|><|b|>");
  file.add_user_defined("\n\n");
  return file;
}

// Adds pieces of falling score, `last` behind those that both kinds of SentencePiece get.
VocabularyFile with_pieces(VocabularyFile file, std::string_view last) {
  float score = 0;
  for (const std::string_view text : std::initializer_list<std::string_view>{"a", "b", "aa", "ab",
                                                                             "\xe2\x96\x81"
                                                                             "a",
                                                                             "a\xe2\x96\x81", last})
    file.add(text, TokenKind::kNormal, score -= 1);
  file.add_user_defined("<b>");
  return file;
}

VocabularyFile rich_spm() { return with_pieces(testing::spm_vocabulary(), "\n"); }

VocabularyFile rich_unigram(bool merge_spaces) {
  VocabularyFile file = testing::unigram_vocabulary();
  file.more.back().second.value = merge_spaces;
  return with_pieces(std::move(file), "\xe2\x96\x81\xe2\x96\x81");
}

VocabularyFile rich_wordpiece(bool lower_case) {
  VocabularyFile file = testing::wordpiece_vocabulary();
  file.set("tokenizer.ggml.normalizer.lowercase", lower_case);
  for (const char* text : {"\xe2\x96\x81"
                           "ab",
                           "bcd", "\xe2\x96\x81!", "\xe2\x96\x81\u4e2d", "\u1100", "\u1161"})
    file.add(text);
  file.add_user_defined("<b>");
  return file;
}

VocabularyFile rich_rwkv() {
  VocabularyFile file = testing::rwkv_vocabulary();
  for (const char* text : {"ab", "aaa", "a\\n", "\\xe4\\xbd"}) file.add(text);
  file.add_user_defined("<b>");
  return file;
}

const std::vector<std::unique_ptr<const Tokenizer>>& tokenizers() {
  static const auto all = [] {
    std::vector<std::unique_ptr<const Tokenizer>> made;
    for (const std::string_view rules : pre_tokenizer_names())
      if (auto tokenizer = rich_bpe(rules).create(); tokenizer.ok())
        made.push_back(std::move(tokenizer).value());
    for (const VocabularyFile& file : {rich_spm(), rich_unigram(true), rich_unigram(false),
                                       rich_wordpiece(true), rich_wordpiece(false), rich_rwkv()})
      made.push_back(std::move(file.create()).value());
    return made;
  }();
  return all;
}

void require(bool holds) {
  if (!holds) __builtin_trap();
}

// Every byte of `input` that is below 4 ends a span; its bits say what comes next.
std::vector<TextSpan> cut(std::string_view input) {
  std::vector<TextSpan> spans;
  bool trusted = false;
  while (!input.empty()) {
    const std::size_t end = std::min(input.find_first_of("\x01\x02\x03"), input.size());
    spans.push_back({input.substr(0, end), trusted});
    if (end == input.size()) break;
    trusted = (input[end] & 1) != 0;
    input.remove_prefix(end + 1);
  }
  return spans;
}

void exercise(const Tokenizer& tokenizer, std::string_view input) {
  const std::vector<TextSpan> spans = cut(input);
  const auto ids = tokenizer.encode(spans);
  if (!ids.ok()) return;
  bool any_trusted = false;
  for (const TextSpan& span : spans) any_trusted = any_trusted || span.parse_special;
  Detokenizer stream(tokenizer, {.include_special = true});
  for (const TokenId id : ids.value()) {
    require(tokenizer.contains(id));
    require(any_trusted || tokenizer.token_kind(id) != TokenKind::kControl ||
            id == tokenizer.special_ids().bos || id == tokenizer.special_ids().eos);
    const std::string text = stream.push(id);
    require(utf8_valid_bytes(text) == text.size());
  }
  stream.finish();
  (void)tokenizer.decode(ids.value());
}

// Lines of the input become tokens (the first byte gives kind and score), then merges, and what
// follows "==" normalization rules.
void invent(std::string_view input) {
  VocabularyFile file;
  constexpr std::array kModels = {"llama", "gpt2", "t5", "bert", "rwkv"};
  file.model = kModels[input.size() % kModels.size()];
  bool merges = false;
  std::string_view rest = input;
  while (!rest.empty() && file.texts.size() < 512) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line == "==") {
      MetadataArray rules;
      rules.numbers = rest;
      rules.count = rest.size();
      file.more.emplace_back("tokenizer.ggml.precompiled_charsmap",
                             MetadataEntry{ValueType::kArray, std::move(rules)});
      break;
    }
    if (line == "--") {
      merges = true;
    } else if (merges) {
      file.merges.emplace_back(line);
    } else if (!line.empty()) {
      file.add(line.substr(1), static_cast<TokenKind>(line[0] & 7), static_cast<float>(line[0]));
    }
  }
  const auto tokenizer = file.create();
  if (tokenizer.ok()) exercise(*tokenizer.value(), input);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 0xff)
    invent(input);
  else
    exercise(*tokenizers()[data[0] % tokenizers().size()], input);
  return 0;
}
