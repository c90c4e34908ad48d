// Pairs of texts whose scores a model computes.
#pragma once

#include <string_view>
#include <vector>

#include "gguf/metadata.h"
#include "text/tokenizer/tokenizer.h"

namespace strata::apps {

// The tokens of a query and a document with a tab in between, as BERT's family joins them: the end
// of the query is the border, which RoBERTa's vocabularies, all but WordPiece, double. Fails where
// there is no tab, or where the file names no token to end a text with.
Result<std::vector<TokenId>> encode_pair(const Tokenizer& tokenizer, const Metadata& metadata,
                                         std::string_view text);

}  // namespace strata::apps
