// SentencePiece's byte-pair model by scores, with byte fallback: `tokenizer.ggml.model` = llama.
// Source: Kudo, Richardson, "SentencePiece: A simple and language independent subword tokenizer".
#pragma once

#include <array>
#include <memory>

#include "text/tokenizer/hash_tables.h"
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
  std::size_t next_cut(std::string_view text) const;
  Status encode_segment(std::string_view text, Merger& merger, std::vector<TokenId>& out) const;
  Status append_bytes(std::string_view bytes, std::vector<TokenId>& out) const;

  const Vocabulary& vocabulary_;
  const bool add_space_prefix_;
  TextTable tokens_;                     // those that text can become
  std::vector<std::uint32_t> priority_;  // per token: 0 for the best score, equal for equal ones
  std::size_t longest_ = 0;              // bytes of the longest of tokens_
  std::array<bool, 256> joins_space_{};  // some token has this byte right before U+2581
  std::vector<TokenId> byte_tokens_;
};

}  // namespace strata
