// How a vocabulary turns ordinary text, free of special tokens, into tokens.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "text/tokenizer/merger.h"
#include "text/tokenizer/piece_cache.h"

namespace strata {

// The best way to tokenize a text up to some byte.
struct BestPath {
  double score;
  std::uint32_t start;  // of its last token
  TokenId last;         // kNoToken: a character that has no token
};

// What one call of Tokenizer::encode works with, kept from one stretch of text to the next.
struct EncodeScratch {
  Merger merger;
  PieceCache cache;
  std::vector<std::string_view> pieces;
  std::vector<BestPath> paths;
};

class TextModel {
 public:
  virtual ~TextModel() = default;

  // Appends the tokens of `text`. `starts_segment`: the text begins the input or follows a special
  // token. Fails where the text holds a byte for which there is no token. Any thread.
  // REQUIRES: text has at most 2^29 bytes; `scratch` is new or comes from this model.
  virtual Status encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                        std::vector<TokenId>& out) const = 0;
};

}  // namespace strata
