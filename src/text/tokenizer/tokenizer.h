// Text to tokens and back, as the vocabulary in a GGUF file prescribes.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "gguf/metadata.h"
#include "text/tokenizer/special_tokens.h"
#include "text/tokenizer/text_model.h"
#include "text/tokenizer/vocabulary.h"

namespace strata {

// A stretch of a prompt. Control tokens are recognised only where `parse_special` is set: in what
// a template wrote, not in what a stranger said.
struct TextSpan {
  std::string_view text;
  bool parse_special = false;
};

struct EncodeOptions {
  bool add_bos = true;  // where the file asks for it; false: never
  bool add_eos = true;  // likewise
};

struct DecodeOptions {
  bool include_special = false;  // write control tokens as their texts
  // Take back the space that encoding put before the first text, so that texts round-trip. For a
  // continuation, whose first space is its own, it must be false.
  bool strip_space_prefix = true;
};

// What is behind a value of `tokenizer.ggml.model`, for people; empty where Strata does not know
// it.
std::string_view tokenizer_kind(std::string_view model);

// Immutable; safe to use from any thread.
class Tokenizer {
 public:
  // Reads the `tokenizer.ggml.*` keys; keeps no reference to `metadata`. kUnsupported for kinds of
  // vocabulary that tokenizer_kind does not name; kCorrupt, naming the key, where the keys
  // contradict each other.
  static Result<std::unique_ptr<const Tokenizer>> create(const Metadata& metadata);

  // The spans are tokenized as the one text they form: only control tokens see their borders, as
  // none is recognised that reaches into a span where `parse_special` is off. Byte-pair, SPM and
  // RWKV vocabularies keep the bytes of text that is not UTF-8; Unigram and WordPiece ones read
  // normalized text, and what they normalize away does not come back. A BOS or EOS token that is
  // there already is not added again.
  Result<std::vector<TokenId>> encode(std::span<const TextSpan> spans,
                                      EncodeOptions options = {}) const;
  Result<std::vector<TokenId>> encode(std::string_view text, bool parse_special,
                                      EncodeOptions options = {}) const;

  // The bytes of the tokens, which need not be UTF-8. Fails on ids outside the vocabulary.
  Result<std::string> decode(std::span<const TokenId> ids, DecodeOptions options = {}) const;

  std::int32_t vocabulary_size() const { return vocabulary_.size(); }
  bool contains(TokenId id) const { return vocabulary_.contains(id); }

  // Empty for ids outside the vocabulary, and for control and unknown tokens unless
  // `include_special` is set (or the token is part of the visible answer).
  std::string_view token_bytes(TokenId id, bool include_special = false) const;
  // As the vocabulary spells it. REQUIRES for these three: contains(id).
  std::string_view token_text(TokenId id) const { return vocabulary_.tokens[id].text; }
  TokenKind token_kind(TokenId id) const { return vocabulary_.tokens[id].kind; }
  float token_score(TokenId id) const { return vocabulary_.tokens[id].score; }

  // EOS, EOT, EOM and whatever else the field stops at.
  bool is_end_of_generation(TokenId id) const {
    return contains(id) && vocabulary_.tokens[id].ends_generation;
  }
  const SpecialIds& special_ids() const { return vocabulary_.special; }
  bool add_bos() const { return flags_.add_bos; }
  bool add_eos() const { return flags_.add_eos; }
  bool add_space_prefix() const { return flags_.add_space_prefix; }

  // What in the file is doubtful; for the user to see.
  std::span<const std::string> warnings() const { return vocabulary_.warnings; }

 private:
  struct Flags {
    bool add_bos = false;
    bool add_eos = false;
    bool add_space_prefix = false;
  };

  Tokenizer(Vocabulary vocabulary, Flags flags)
      : vocabulary_(std::move(vocabulary)), flags_(flags), special_tokens_(vocabulary_) {}

  using Made = Result<std::unique_ptr<const Tokenizer>>;
  static Made create_bpe(const Metadata& metadata, std::string_view rules_name);
  static Made create_spm(const Metadata& metadata);
  static Made create_wordpiece(const Metadata& metadata);
  static Made create_unigram(const Metadata& metadata);
  static Made create_rwkv(const Metadata& metadata);
  static Result<Flags> read_flags(const Metadata& metadata, Flags defaults, Vocabulary& vocabulary);

  Vocabulary vocabulary_;
  Flags flags_;
  SpecialTokens special_tokens_;
  std::unique_ptr<const TextModel> model_;
};

}  // namespace strata
