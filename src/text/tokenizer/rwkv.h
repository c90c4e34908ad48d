// RWKV's tokenizer: the longest token that the rest of the text starts with, again and again.
// `tokenizer.ggml.model` = rwkv.
#pragma once

#include "text/tokenizer/byte_fallback.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/text_model.h"

namespace strata {

class RwkvModel final : public TextModel {
 public:
  // `vocabulary` must outlive the model.
  explicit RwkvModel(const Vocabulary& vocabulary);

  Status encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                std::vector<TokenId>& out) const override;

 private:
  PrefixTrie tokens_;
  ByteFallback fallback_;
};

}  // namespace strata
