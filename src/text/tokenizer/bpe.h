// Byte-pair encoding with ranked merges after a pre-tokenizer: `tokenizer.ggml.model` = gpt2.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "gguf/metadata.h"
#include "text/tokenizer/hash_tables.h"
#include "text/tokenizer/splitter.h"
#include "text/tokenizer/text_model.h"
#include "text/tokenizer/vocabulary.h"

namespace strata {

class BpeModel final : public TextModel {
 public:
  // Reads `tokenizer.ggml.merges`. `vocabulary` must outlive the model and may gain warnings.
  static Result<std::unique_ptr<const TextModel>> create(const Metadata& metadata,
                                                         const PreTokenizer& rules,
                                                         Vocabulary& vocabulary);

  Status encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  BpeModel(const PreTokenizer& rules, Splitter splitter, const Vocabulary& vocabulary);

  void index_tokens();
  Status read_merges(const Metadata& metadata, Vocabulary& vocabulary);
  std::int32_t intern(std::string_view bytes);
  bool is_looked_up_whole(std::string_view piece) const;
  Status encode_piece(std::string_view piece, Merger& merger, std::vector<TokenId>& out) const;
  Status append_bytes(std::string_view bytes, std::vector<TokenId>& out) const;

  const PreTokenizer& rules_;
  Splitter splitter_;
  const Vocabulary& vocabulary_;

  // Symbols are the byte strings that merging meets. Those with ids below the vocabulary's size
  // are tokens; a file may have merges through strings that are none.
  TextTable symbols_;
  std::deque<std::string> owned_;  // the bytes of symbols that are no tokens
  PairTable merges_;
  std::vector<TokenId> byte_tokens_;  // what a byte becomes that no symbol covers
};

}  // namespace strata
