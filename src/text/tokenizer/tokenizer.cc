#include "text/tokenizer/tokenizer.h"

#include <optional>

#include "base/printable.h"
#include "text/tokenizer/bpe.h"
#include "text/tokenizer/spm.h"

namespace strata {
namespace {

constexpr std::string_view kModelKey = "tokenizer.ggml.model";
constexpr std::string_view kPreKey = "tokenizer.ggml.pre";
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

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create(const Metadata& metadata) {
  STRATA_ASSIGN(const std::string_view model, metadata.get_string(kModelKey));
  if (model == "llama") return create_spm(metadata);
  if (model == "gemma4") return create_bpe(metadata, "gemma4");
  if (model == "gpt2") return create_bpe(metadata, "");
  return unsupported(
      "key `{}` is `{}`; Strata tokenizes byte-pair (gpt2, gemma4) and SentencePiece (llama) "
      "vocabularies",
      kModelKey, printable(model, 64));
}

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create_bpe(const Metadata& metadata,
                                                               std::string_view rules_name) {
  STRATA_ASSIGN(std::optional<std::string_view> name, metadata.optional_string(kPreKey));
  if (!rules_name.empty()) name = rules_name;
  const PreTokenizerChoice choice = choose_pre_tokenizer(name);
  STRATA_ASSIGN(Vocabulary vocabulary,
                Vocabulary::read(metadata, spelling_of(*choice.rules), SpecialIds()));
  if (!choice.warning.empty())
    vocabulary.warnings.insert(vocabulary.warnings.begin(), choice.warning);
  STRATA_ASSIGN(const Flags flags,
                read_flags(metadata, {.add_bos = choice.rules->add_bos}, vocabulary));
  std::unique_ptr<Tokenizer> tokenizer(new Tokenizer(std::move(vocabulary), flags));
  STRATA_ASSIGN(tokenizer->model_,
                BpeModel::create(metadata, *choice.rules, tokenizer->vocabulary_));
  return std::unique_ptr<const Tokenizer>(std::move(tokenizer));
}

Result<std::unique_ptr<const Tokenizer>> Tokenizer::create_spm(const Metadata& metadata) {
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

Result<Tokenizer::Flags> Tokenizer::read_flags(const Metadata& metadata, Flags defaults,
                                               Vocabulary& vocabulary) {
  Flags flags = defaults;
  const auto read = [&](std::string_view key, bool& flag) -> Status {
    STRATA_ASSIGN(const std::optional<bool> value, metadata.optional_bool(key));
    flag = value.value_or(flag);
    return {};
  };
  STRATA_TRY(read("tokenizer.ggml.add_bos_token", flags.add_bos));
  STRATA_TRY(read("tokenizer.ggml.add_eos_token", flags.add_eos));
  if (defaults.add_space_prefix)
    STRATA_TRY(read("tokenizer.ggml.add_space_prefix", flags.add_space_prefix));
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
