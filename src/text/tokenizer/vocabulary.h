// The tokens of a model file: texts, kinds, scores, the bytes each stands for, special ids.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "gguf/metadata.h"

namespace strata {

constexpr TokenId kNoToken = -1;

// The numbers are those of `tokenizer.ggml.token_type`.
enum class TokenKind : std::uint8_t {
  kUndefined = 0,
  kNormal = 1,
  kUnknown = 2,      // stands for text that has no token
  kControl = 3,      // steers the model; text, but for trusted spans, never becomes one
  kUserDefined = 4,  // found in all text before anything else is
  kUnused = 5,
  kByte = 6,  // <0xXX>: one byte
};

struct Token {
  std::string text;   // as the vocabulary spells it; unique among the tokens that text can become
  std::string bytes;  // what it stands for in text
  float score = 0;
  TokenKind kind = TokenKind::kNormal;
  bool strip_left = false;    // takes the white space before it along
  bool strip_right = false;   // and after it
  bool always_shown = false;  // a control token that is part of the visible answer
  bool ends_generation = false;

  // Only a model's own ways to tokenize turn text into it.
  bool is_ordinary() const { return kind == TokenKind::kNormal || kind == TokenKind::kUndefined; }
};

struct SpecialIds {
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId eot = kNoToken;  // end of turn
  TokenId eom = kNoToken;  // end of message, a tool call follows
  TokenId unk = kNoToken;
  TokenId sep = kNoToken;
  TokenId pad = kNoToken;
  TokenId mask = kNoToken;
  TokenId fim_prefix = kNoToken;
  TokenId fim_suffix = kNoToken;
  TokenId fim_middle = kNoToken;
  TokenId fim_pad = kNoToken;
  TokenId fim_repository = kNoToken;
  TokenId fim_separator = kNoToken;
};

// How a vocabulary spells the bytes of its normal tokens.
enum class Spelling {
  kByteAlphabet,  // byte_alphabet.h
  kEscapedSpace,  // UTF-8 with U+2581 for a space
  kEscapedBytes,  // byte_escapes.h
  kPlain,         // UTF-8
};

struct Vocabulary {
  std::vector<Token> tokens;
  SpecialIds special;
  std::vector<std::string> warnings;

  // Reads and checks `tokenizer.ggml.{tokens,token_type,scores,*_token_id}`: lengths must agree,
  // element types be right and ids exist. `defaults` are the ids of a family whose files may leave
  // them out.
  static Result<Vocabulary> read(const Metadata& metadata, Spelling spelling,
                                 const SpecialIds& defaults);

  std::int32_t size() const { return static_cast<std::int32_t>(tokens.size()); }
  bool contains(TokenId id) const { return id >= 0 && id < size(); }

  // The token for text that has none. Some files name their end-of-text token as "unknown"; text
  // must not become a control token, so that one is none.
  TokenId unknown_text_token() const {
    const bool fits = contains(special.unk) && tokens[special.unk].kind == TokenKind::kUnknown;
    return fits ? special.unk : kNoToken;
  }
};

// The 256 tokens <0xXX>, kNoToken where there is none.
std::vector<TokenId> byte_tokens(const Vocabulary& vocabulary);

}  // namespace strata
