#include "text_pair.h"

namespace strata::apps {

Result<std::vector<TokenId>> encode_pair(const Tokenizer& tokenizer, const Metadata& metadata,
                                         std::string_view text) {
  const std::size_t tab = text.find('\t');
  if (tab == std::string_view::npos)
    return invalid_argument(
        "the model scores pairs of texts: a query and a document, with a tab in between");
  if (!tokenizer.add_eos())
    return unsupported("the model scores pairs of texts, but its file adds no token that ends one");
  STRATA_ASSIGN(std::vector<TokenId> tokens, tokenizer.encode(text.substr(0, tab), false));
  STRATA_ASSIGN(const std::string_view kind, metadata.get_string("tokenizer.ggml.model"));
  if (kind != "bert") tokens.push_back(tokenizer.special_ids().eos);
  STRATA_ASSIGN(const auto document,
                tokenizer.encode(text.substr(tab + 1), false, {.add_bos = false}));
  tokens.insert(tokens.end(), document.begin(), document.end());
  return tokens;
}

}  // namespace strata::apps
