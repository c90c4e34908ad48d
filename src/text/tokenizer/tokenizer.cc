#include "text/tokenizer/tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/rwkv.h"
#include "text/tokenizer/spm.h"
#include "text/tokenizer/unigram.h"
#include "text/tokenizer/wordpiece.h"

namespace strata {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
constexpr std::string_view kAddBosKey = "tokenizer.ggml.add_bos_token";
constexpr std::string_view kAddSpacePrefixKey = "tokenizer.ggml.add_space_prefix";
constexpr std::size_t kMaxTextBytes = std::size_t{1} << 29;  // escaped, it stays below 2^31

struct PreTokenizerChoice {
  const PreTokenizer* rules;
  std::string warning;  // empty where the file names rules that are known
};

PreTokenizerChoice choose_pre_tokenizer(std::optional<std::string_view> name) {
  if (!name)
    return {&default_pre_tokenizer(),
            fmt::format("key `{}` is missing: text is cut into words by the default rules, and "
                        "answers may be worse than the model's; convert the model again",
                        kPreKey)};
  if (const PreTokenizer* rules = find_pre_tokenizer(*name)) return {rules, ""};
  return {&default_pre_tokenizer(),
          fmt::format("key `{}` is `{}`, which is not known: text is cut into words by the default "
                      "rules, and answers may be worse than the model's",
                      kPreKey, printable(*name, 64))};
}

Spelling spelling_of(const PreTokenizer& rules) {
  if (rules.byte_level) return Spelling::kByteAlphabet;
  return rules.escape_spaces ? Spelling::kEscapedSpace : Spelling::kPlain;
}

// Leaves `flag` as it is where the key is absent.
Status read_flag(const Metadata& metadata, std::string_view key, bool& flag) {
  STRATA_ASSIGN(const std::optional<bool> value, metadata.optional_bool(key));
  flag = value.value_or(flag);
  return {};
}

// Converters mark BERT's [UNK] as a control token, though text is what it stands for.
void claim_unknown_token(Vocabulary& vocabulary) {
  const SpecialIds& ids = vocabulary.special;
  if (ids.unk == kNoToken) return;
  for (const TokenId other : {ids.bos, ids.eos, ids.sep, ids.pad, ids.mask})
    if (ids.unk == other) return;
  vocabulary.tokens[ids.unk].kind = TokenKind::kUnknown;
}

std::vector<TrustedRange> trusted_ranges(std::span<const TextSpan> spans) {
  std::vector<TrustedRange> ranges;
  std::size_t at = 0;
  for (const TextSpan& span : spans) {
    const std::size_t end = at + span.text.size();
    if (span.parse_special && end > at) {
      if (!ranges.empty() && ranges.back().end == at)
        ranges.back().end = end;
      else
        ranges.push_back({at, end});
    }
    at = end;
  }
  return ranges;
}

}  // namespace

std::string_view tokenizer_kind(std::string_view model) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"gpt2", "byte-pair"}, {"gemma4", "byte-pair"}, {"llama", "SentencePiece byte-pair"},
      {"t5", "Unigram"},     {"bert", "WordPiece"},   {"rwkv", "RWKV"}};
  const auto* kind =
      std::ranges::find(kKinds, model, [](const auto& entry) { return entry.first; });
  return kind == std::end(kKinds) ? std::string_view() : kind->second;
}

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create(const Metadata& metadata) {
  STRATA_ASSIGN(const std::string_view model, metadata.get_string(kModelKey));
  if (model == "llama") return create_spm(metadata);
  if (model == "gemma4") return create_bpe(metadata, "gemma4");
  if (model == "gpt2") return create_bpe(metadata, "");
  if (model == "bert") return create_wordpiece(metadata);
  if (model == "t5") return create_unigram(metadata);
  if (model == "rwkv") return create_rwkv(metadata);
  return unsupported(
      "key `{}` is `{}`; Strata tokenizes byte-pair (gpt2, gemma4), SentencePiece (llama, t5), "
      "WordPiece (bert) and RWKV (rwkv) vocabularies",
      kModelKey, printable(model, 64));
}

Tokenizer::Made Tokenizer::create_bpe(const Metadata& metadata, std::string_view rules_name) {
  STRATA_ASSIGN(std::optional<std::string_view> name, metadata.optional_string(kPreKey));
  if (!rules_name.empty()) name = rules_name;
  const PreTokenizerChoice choice = choose_pre_tokenizer(name);
  STRATA_ASSIGN(Vocabulary vocabulary,
                Vocabulary::read(metadata, spelling_of(*choice.rules), SpecialIds()));
  if (!choice.warning.empty())
    vocabulary.warnings.insert(vocabulary.warnings.begin(), choice.warning);
  STRATA_ASSIGN(Flags flags, read_flags(metadata, {.add_bos = choice.rules->add_bos}, vocabulary));
  if (choice.rules->always_add_bos && !flags.add_bos && vocabulary.special.bos != kNoToken) {
    flags.add_bos = true;
    vocabulary.warnings.push_back(
        fmt::format("key `{}` is false, but models of this family need the BOS token: it is added",
                    kAddBosKey));
  }
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary), flags));
  STRATA_ASSIGN(tokenizer->model_,
                BpeModel::create(metadata, *choice.rules, tokenizer->vocabulary_));
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

Tokenizer::Made Tokenizer::create_spm(const Metadata& metadata) {
  // Without scores every merge would be as good as any other.
  STRATA_TRY(metadata.get_array("tokenizer.ggml.scores").status());
  STRATA_ASSIGN(Vocabulary vocabulary, Vocabulary::read(metadata, Spelling::kEscapedSpace,
                                                        {.bos = 1, .eos = 2, .unk = 0}));
  STRATA_ASSIGN(Flags flags,
                read_flags(metadata, {.add_bos = true, .add_space_prefix = true}, vocabulary));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary), flags));
  tokenizer->model_ =
      std::make_unique<const SpmModel>(tokenizer->vocabulary_, flags.add_space_prefix);
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

// [CLS] stands before a text and [SEP] after it, whatever files call BOS and EOS: they name those
// two, or neither.
Tokenizer::Made Tokenizer::create_wordpiece(const Metadata& metadata) {
  SpecialIds defaults{.bos = 101, .unk = 100, .sep = 102, .pad = 0, .mask = 103};
  STRATA_ASSIGN(const std::optional<std::int64_t> cls,
                metadata.optional_integer("tokenizer.ggml.cls_token_id"));
  if (cls && std::in_range<TokenId>(*cls)) defaults.bos = static_cast<TokenId>(*cls);
  STRATA_ASSIGN(Vocabulary vocabulary,
                Vocabulary::read(metadata, Spelling::kEscapedSpace, defaults));
  SpecialIds& special = vocabulary.special;
  if (special.sep != kNoToken) special.eos = special.sep;
  claim_unknown_token(vocabulary);
  STRATA_ASSIGN(Flags flags, read_flags(metadata, {.add_bos = true}, vocabulary));
  flags.add_eos = true;
  STRATA_TRY(read_flag(metadata, "tokenizer.ggml.add_sep_token", flags.add_eos));
  flags.add_eos = flags.add_eos && special.eos != kNoToken;
  flags.add_space_prefix = true;  // each word is spelled with one, and the first is not the text's
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary), flags));
  STRATA_ASSIGN(tokenizer->model_, WordPieceModel::create(metadata, tokenizer->vocabulary_));
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

Tokenizer::Made Tokenizer::create_unigram(const Metadata& metadata) {
  // Without scores every way to cut a text would be as good as any other.
  STRATA_TRY(metadata.get_array("tokenizer.ggml.scores").status());
  STRATA_ASSIGN(Vocabulary vocabulary, Vocabulary::read(metadata, Spelling::kEscapedSpace,
                                                        {.eos = 1, .unk = 2, .pad = 0}));
  claim_unknown_token(vocabulary);
  STRATA_ASSIGN(Flags flags, read_flags(metadata, {.add_eos = true}, vocabulary));
  STRATA_TRY(read_flag(metadata, kAddSpacePrefixKey, flags.add_space_prefix));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary), flags));
  STRATA_ASSIGN(tokenizer->model_,
                UnigramModel::create(metadata, tokenizer->vocabulary_, flags.add_space_prefix));
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

Tokenizer::Made Tokenizer::create_rwkv(const Metadata& metadata) {
  STRATA_ASSIGN(Vocabulary vocabulary,
                Vocabulary::read(metadata, Spelling::kEscapedBytes, SpecialIds()));
  STRATA_ASSIGN(const Flags flags, read_flags(metadata, {}, vocabulary));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary), flags));
  tokenizer->model_ = std::make_unique<const RwkvModel>(tokenizer->vocabulary_);
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

Result<Tokenizer::Flags> Tokenizer::read_flags(const Metadata& metadata, Flags defaults,
                                               Vocabulary& vocabulary) {
  Flags flags = defaults;
  STRATA_TRY(read_flag(metadata, kAddBosKey, flags.add_bos));
  STRATA_TRY(read_flag(metadata, "tokenizer.ggml.add_eos_token", flags.add_eos));
  if (defaults.add_space_prefix)
    STRATA_TRY(read_flag(metadata, kAddSpacePrefixKey, flags.add_space_prefix));
  const auto require = [&](bool& flag, TokenId id, std::string_view name) {
    if (!flag || id != kNoToken) return;
    flag = false;
    vocabulary.warnings.push_back(
        fmt::format("texts should be given a {} token, but the file names none", name));
  };
  require(flags.add_bos, vocabulary.special.bos, "BOS");
  require(flags.add_eos, vocabulary.special.eos, "EOS");
  return flags;
}

Result<std::vector<TokenId>> Tokenizer::encode(std::string_view text, bool parse_special,
                                               EncodeOptions options) const {
  const TextSpan span{text, parse_special};
  return encode(std::span(&span, 1), options);
}

Result<std::vector<TokenId>> Tokenizer::encode(std::span<const TextSpan> spans,
                                               EncodeOptions options) const {
  std::string joined;
  std::string_view text;
  if (spans.size() == 1) {
    text = spans[0].text;
  } else {
    for (const TextSpan& span : spans) joined += span.text;
    text = joined;
  }
  if (text.size() > kMaxTextBytes)
    return resource_exhausted("the text has {} bytes; at most {} are tokenized at once",
                              text.size(), kMaxTextBytes);
  std::vector<TokenId> ids;
  EncodeScratch scratch;
  bool starts_segment = true;
  for (const Fragment& fragment : special_tokens_.partition(text, trusted_ranges(spans))) {
    if (fragment.token != kNoToken)
      ids.push_back(fragment.token);
    else
      STRATA_TRY(model_->encode(fragment.text, starts_segment, scratch, ids));
    starts_segment = fragment.token != kNoToken;
  }
  const SpecialIds& special = vocabulary_.special;
  if (options.add_bos && flags_.add_bos && (ids.empty() || ids.front() != special.bos))
    ids.insert(ids.begin(), special.bos);
  if (options.add_eos && flags_.add_eos && (ids.empty() || ids.back() != special.eos))
    ids.push_back(special.eos);
  return ids;
}

Result<std::string> Tokenizer::decode(std::span<const TokenId> ids, DecodeOptions options) const {
  std::string text;
  bool at_start = options.strip_space_prefix && flags_.add_space_prefix;
  for (const TokenId id : ids) {
    if (!contains(id))
      return invalid_argument("token {} is not in the vocabulary, whose ids are 0 to {}", id,
                              vocabulary_size() - 1);
    std::string_view bytes = token_bytes(id, options.include_special);
    if (at_start && token_kind(id) != TokenKind::kControl) {
      if (bytes.starts_with(' ')) bytes.remove_prefix(1);
      at_start = false;
    }
    text += bytes;
  }
  return text;
}

std::string_view Tokenizer::token_bytes(TokenId id, bool include_special) const {
  if (!contains(id)) return {};
  const Token& token = vocabulary_.tokens[id];
  const bool is_hidden = token.kind == TokenKind::kControl || token.kind == TokenKind::kUnknown;
  if (is_hidden && !include_special && !token.always_shown) return {};
  return token.bytes;
}

}  // namespace strata
