#include "text/tokenizer/rwkv.h"

namespace strata {

RwkvModel::RwkvModel(const Vocabulary& vocabulary)
    : tokens_(ordinary_tokens(vocabulary, &Token::bytes)), fallback_(vocabulary) {}

Status RwkvModel::encode(std::string_view text, bool /*starts_segment*/, EncodeScratch& /*scratch*/,
                         std::vector<TokenId>& out) const {
  while (!text.empty()) {
    const PrefixTrie::Entry token = tokens_.longest_prefix(text);
    if (token.id != kNoToken)
      out.push_back(token.id);
    else
      STRATA_TRY(fallback_.append(text.substr(0, 1), out));
    text.remove_prefix(token.id != kNoToken ? token.key.size() : 1);
  }
  return {};
}

}  // namespace strata
