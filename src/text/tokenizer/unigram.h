// SentencePiece's unigram model: of all ways to cut a text into tokens, the one with the greatest
// sum of scores. `tokenizer.ggml.model` = t5.
// Source: Kudo, "Subword Regularization: Improving Neural Network Translation Models with Multiple
// Subword Candidates".
#pragma once

#include <memory>

#include "gguf/metadata.h"
#include "text/tokenizer/byte_fallback.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/segment_cutter.h"
#include "text/tokenizer/text_model.h"

namespace strata {

class UnigramModel final : public TextModel {
 public:
  // Reads the normalization rules. `vocabulary` must outlive the model. `add_space_prefix`: text
  // that is not all blank gets a space before it.
  static Result<std::unique_ptr<const TextModel>> create(const Metadata& metadata,
                                                         const Vocabulary& vocabulary,
                                                         bool add_space_prefix);

  // A byte that is not part of a character is read as U+FFFD.
  Status encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  explicit UnigramModel(const Vocabulary& vocabulary);

  Result<std::string> normalize(std::string_view text) const;
  Result<Charsmap::Match> normalize_prefix(std::string_view text) const;
  Status encode_segment(std::string_view text, std::vector<BestPath>& paths,
                        std::vector<TokenId>& out) const;
  void find_best_paths(std::string_view text, std::vector<BestPath>& paths) const;

  const Vocabulary& vocabulary_;
  PrefixTrie tokens_;
  SegmentCutter cutter_;
  ByteFallback fallback_;
  double unknown_score_ = 0;  // of a character that no token covers
  Charsmap rules_;
  bool add_space_prefix_ = false;
  bool merge_spaces_ = false;  // none at the ends of a text, one where there are several
};

}  // namespace strata
