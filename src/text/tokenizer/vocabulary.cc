#include "text/tokenizer/vocabulary.h"

#include <cmath>
#include <optional>

#include "base/printable.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/byte_escapes.h"
#include "text/tokenizer/escaped_space.h"
#include "text/tokenizer/special_roles.h"

namespace strata {
namespace {

constexpr std::string_view kTokensKey = "tokenizer.ggml.tokens";
constexpr std::string_view kKindsKey = "tokenizer.ggml.token_type";
constexpr std::string_view kScoresKey = "tokenizer.ggml.scores";
constexpr std::size_t kMaxTokens = std::size_t{1} << 24;
constexpr std::size_t kMaxTokenBytes = 4096;
constexpr std::size_t kMaxVocabularyBytes = std::size_t{1} << 28;

// The value of a byte token's text: <0x00> to <0xFF>.
std::optional<unsigned char> byte_token_value(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return std::nullopt;
  return hex_byte(text.substr(3, 2));
}

// nullptr where the key is absent.
Result<const MetadataArray*> optional_array(const Metadata& metadata, std::string_view key,
                                            std::size_t count) {
  if (!metadata.contains(key)) return static_cast<const MetadataArray*>(nullptr);
  STRATA_ASSIGN(const MetadataArray* array, metadata.get_array(key));
  if (array->count != count)
    return corrupt("key `{}` has {} elements, but `{}` has {}", key, array->count, kTokensKey,
                   count);
  return array;
}

Status read_texts(const Metadata& metadata, std::vector<Token>& tokens) {
  STRATA_ASSIGN(const MetadataArray* array, metadata.get_array(kTokensKey));
  const auto texts = array->as_strings();
  if (!texts.ok()) return texts.status().with_context(kTokensKey);
  if (texts.value().empty()) return corrupt("key `{}` holds no token", kTokensKey);
  if (texts.value().size() > kMaxTokens)
    return unsupported("key `{}` holds {} tokens; the limit is {}", kTokensKey,
                       texts.value().size(), kMaxTokens);
  tokens.resize(texts.value().size());
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view text = texts.value()[id];
    if (text.size() > kMaxTokenBytes)
      return unsupported("token {} of `{}` has {} bytes; the limit is {}", id, kTokensKey,
                         text.size(), kMaxTokenBytes);
    tokens[id].text = text;
    bytes += text.size();
  }
  if (bytes > kMaxVocabularyBytes)
    return unsupported("key `{}` holds {} bytes of text; the limit is {}", kTokensKey, bytes,
                       kMaxVocabularyBytes);
  return {};
}

Status read_kinds(const Metadata& metadata, std::vector<Token>& tokens) {
  STRATA_ASSIGN(const MetadataArray* array, optional_array(metadata, kKindsKey, tokens.size()));
  if (array == nullptr) return {};
  if (array->element_type != ValueType::kInt32 && array->element_type != ValueType::kUint32)
    return corrupt("key `{}` is an array of {}, where INT32 is expected", kKindsKey,
                   to_string(array->element_type));
  STRATA_ASSIGN(const std::vector<std::int64_t> kinds, array->as_integers());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (kinds[id] < 0 || kinds[id] > static_cast<int>(TokenKind::kByte))
      return corrupt("key `{}` gives token {} the type {}; types are 0 to 6", kKindsKey, id,
                     kinds[id]);
    tokens[id].kind = static_cast<TokenKind>(kinds[id]);
  }
  return {};
}

Status read_scores(const Metadata& metadata, std::vector<Token>& tokens) {
  STRATA_ASSIGN(const MetadataArray* array, optional_array(metadata, kScoresKey, tokens.size()));
  if (array == nullptr) return {};
  if (array->element_type != ValueType::kFloat32 && array->element_type != ValueType::kInt32)
    return corrupt("key `{}` is an array of {}, where FLOAT32 is expected", kScoresKey,
                   to_string(array->element_type));
  STRATA_ASSIGN(const std::vector<double> scores, array->as_floats());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    if (!std::isfinite(scores[id]))
      return corrupt("key `{}` gives token {} a score that is not finite", kScoresKey, id);
    tokens[id].score = static_cast<float>(scores[id]);
  }
  return {};
}

// nullopt where the spelling is none.
std::optional<std::string> normal_bytes(const std::string& text, Spelling spelling) {
  switch (spelling) {
    case Spelling::kEscapedSpace: return unescape_spaces(text);
    case Spelling::kByteAlphabet: return spelled_bytes(text).value_or(text);
    case Spelling::kEscapedBytes: return unescaped_bytes(text);
    case Spelling::kPlain: break;
  }
  return text;
}

Status fill_bytes(std::vector<Token>& tokens, Spelling spelling) {
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    Token& token = tokens[id];
    switch (token.kind) {
      case TokenKind::kUndefined:
      case TokenKind::kNormal: {
        auto bytes = normal_bytes(token.text, spelling);
        if (!bytes)
          return corrupt("token {} of `{}`, `{}`, has a broken backslash escape", id, kTokensKey,
                         printable(token.text, 32));
        token.bytes = *std::move(bytes);
        break;
      }
      case TokenKind::kUnknown:
      case TokenKind::kControl:
      case TokenKind::kUserDefined: token.bytes = token.text; break;
      case TokenKind::kUnused: break;
      case TokenKind::kByte: {
        const auto value = byte_token_value(token.text);
        if (!value)
          return corrupt("token {} of `{}` is a byte token, but `{}` is not <0x00> to <0xFF>", id,
                         kTokensKey, printable(token.text, 32));
        token.bytes = std::string(1, static_cast<char>(*value));
        break;
      }
    }
  }
  return {};
}

struct IdKey {
  std::string_view name;
  TokenId SpecialIds::*id;
  bool essential;  // a wrong id would end answers wrongly, so it is an error and not a warning
};

constexpr IdKey kIdKeys[] = {
    {"bos", &SpecialIds::bos, true},
    {"eos", &SpecialIds::eos, true},
    {"eot", &SpecialIds::eot, true},
    {"eom", &SpecialIds::eom, true},
    {"unknown", &SpecialIds::unk, true},
    {"seperator", &SpecialIds::sep, false},
    {"padding", &SpecialIds::pad, false},
    {"mask", &SpecialIds::mask, false},
    {"prefix", &SpecialIds::fim_prefix, false},
    {"suffix", &SpecialIds::fim_suffix, false},
    {"middle", &SpecialIds::fim_middle, false},
    {"fim_pre", &SpecialIds::fim_prefix, false},
    {"fim_suf", &SpecialIds::fim_suffix, false},
    {"fim_mid", &SpecialIds::fim_middle, false},
    {"fim_pad", &SpecialIds::fim_pad, false},
    {"fim_rep", &SpecialIds::fim_repository, false},
    {"fim_sep", &SpecialIds::fim_separator, false},
};

// -1 and 2^32 - 1 are how writers say "none".
bool means_none(std::int64_t id) { return id == -1 || id == 0xffffffff; }

Status read_special_ids(const Metadata& metadata, Vocabulary& vocabulary) {
  for (const IdKey& key : kIdKeys) {
    TokenId& id = vocabulary.special.*key.id;
    if (id != kNoToken && !vocabulary.contains(id)) id = kNoToken;  // a default that does not fit
    const std::string name = fmt::format("tokenizer.ggml.{}_token_id", key.name);
    STRATA_ASSIGN(const std::optional<std::int64_t> value, metadata.optional_integer(name));
    if (!value) continue;
    if (*value >= 0 && *value < vocabulary.size()) {
      id = static_cast<TokenId>(*value);
    } else if (means_none(*value)) {
      id = kNoToken;
    } else if (key.essential) {
      return corrupt("key `{}` is {}, but the vocabulary has {} tokens", name, *value,
                     vocabulary.size());
    } else {
      vocabulary.warnings.push_back(
          fmt::format("key `{}` is {}, but the vocabulary has {} tokens; the key is ignored", name,
                      *value, vocabulary.size()));
    }
  }
  return {};
}

}  // namespace

Result<Vocabulary> Vocabulary::read(const Metadata& metadata, Spelling spelling,
                                    const SpecialIds& defaults) {
  Vocabulary vocabulary;
  vocabulary.special = defaults;
  STRATA_TRY(read_texts(metadata, vocabulary.tokens));
  STRATA_TRY(read_kinds(metadata, vocabulary.tokens));
  STRATA_TRY(read_scores(metadata, vocabulary.tokens));
  STRATA_TRY(read_special_ids(metadata, vocabulary));
  STRATA_ASSIGN(const std::optional<std::string_view> model_name,
                metadata.optional_string("general.name"));
  STRATA_ASSIGN(const std::optional<std::string_view> pre_tokenizer,
                metadata.optional_string("tokenizer.ggml.pre"));
  assign_special_roles(model_name.value_or(""), pre_tokenizer.value_or(""), vocabulary);
  STRATA_TRY(fill_bytes(vocabulary.tokens, spelling));
  return vocabulary;
}

std::vector<TokenId> byte_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenId> ids(256, kNoToken);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const Token& token = vocabulary.tokens[id];
    if (token.kind != TokenKind::kByte) continue;
    TokenId& entry = ids[static_cast<unsigned char>(token.bytes[0])];
    if (entry == kNoToken) entry = id;
  }
  return ids;
}

}  // namespace strata
