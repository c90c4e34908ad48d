// SentencePiece's byte-pair model by scores, with byte fallback: `tokenizer.ggml.model` = llama.
// Source: Kudo, Richardson, "SentencePiece: A simple and language independent subword tokenizer".
#pragma once

#include "text/tokenizer/byte_fallback.h"
#include "text/tokenizer/hash_tables.h"
#include "text/tokenizer/segment_cutter.h"
#include "text/tokenizer/text_model.h"
#include "text/tokenizer/vocabulary.h"

namespace strata {

class SpmModel final : public TextModel {
 public:
  // `vocabulary` must outlive the model. `add_space_prefix`: text that starts a segment gets a
  // space before it.
  SpmModel(const Vocabulary& vocabulary, bool add_space_prefix);

  Status encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  Status encode_segment(std::string_view text, Merger& merger, std::vector<TokenId>& out) const;

  const bool add_space_prefix_;
  TextTable tokens_;                     // those that text can become
  std::vector<std::uint32_t> priority_;  // per token: 0 for the best score, equal for equal ones
  std::size_t longest_ = 0;              // bytes of the longest of tokens_
  SegmentCutter cutter_;
  ByteFallback fallback_;
};

}  // namespace strata
