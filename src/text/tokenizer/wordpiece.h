// BERT's tokenizer: text is cleaned, cut into words, and each word into the longest tokens, from
// the left. `tokenizer.ggml.model` = bert. In the file, tokens that start a word have U+2581 before
// them, and those that continue one lack their ##.
// Source: Devlin, Chang, Lee, Toutanova, "BERT: Pre-training of Deep Bidirectional Transformers for
// Language Understanding", and the tokenizer published with it.
#pragma once

#include <memory>
#include <string>

#include "gguf/metadata.h"
#include "text/tokenizer/byte_fallback.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/text_model.h"

namespace strata {

class WordPieceModel final : public TextModel {
 public:
  // Reads `tokenizer.ggml.normalizer.*`.
  static Result<std::unique_ptr<const TextModel>> create(const Metadata& metadata,
                                                         const Vocabulary& vocabulary);

  // Drops control characters and bytes that are not UTF-8, as the model's own tokenizer does. A
  // word that its tokens do not cover, or of more than 100 characters, is one unknown token.
  Status encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  struct Word;
  explicit WordPieceModel(const Vocabulary& vocabulary);

  std::u32string normalize(char32_t c) const;
  Status finish(Word& word, PieceCache& cache, std::vector<TokenId>& out) const;
  Status encode_word(const Word& word, std::vector<TokenId>& out) const;

  PrefixTrie starts_;  // of words
  PrefixTrie continuations_;
  ByteFallback fallback_;
  bool lower_case_ = true;
  bool strip_accents_ = true;
};

}  // namespace strata
