#include "text/sequence_breakers.h"

#include <algorithm>

#include "base/printable.h"

namespace strata {
namespace {

constexpr std::size_t kMostTextBytes = 40;
constexpr std::size_t kMostRestTokens = 20;

// rests[n]: the tokens of the text without its first n bytes.
Result<std::vector<std::vector<TokenId>>> rests_of(const Tokenizer& tokenizer,
                                                   std::string_view text) {
  std::vector<std::vector<TokenId>> rests(1);
  for (std::size_t bytes = 1; bytes < text.size(); ++bytes) {
    STRATA_ASSIGN(
        std::vector<TokenId> rest,
        tokenizer.encode(text.substr(bytes), false, {.add_bos = false, .add_eos = false}));
    rest.resize(std::min(rest.size(), kMostRestTokens));
    rests.push_back(std::move(rest));
  }
  return rests;
}

Status add_breakers(const Tokenizer& tokenizer, std::string_view text,
                    std::vector<std::vector<TokenId>>& breakers) {
  if (text.empty() || text.size() > kMostTextBytes)
    return invalid_argument("the sequence breaker '{}' has {} bytes; 1 to {} are possible",
                            printable(text, kMostTextBytes), text.size(), kMostTextBytes);
  STRATA_ASSIGN(const auto rests, rests_of(tokenizer, text));
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id, true);
    if (bytes.find(text) != std::string_view::npos) {
      breakers.push_back({id});
      continue;
    }
    for (std::size_t shared = 1; shared < text.size(); ++shared) {
      if (!bytes.ends_with(text.substr(0, shared))) continue;
      std::vector<TokenId> breaker = {id};
      breaker.insert(breaker.end(), rests[shared].begin(), rests[shared].end());
      breakers.push_back(std::move(breaker));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::vector<TokenId>>> sequence_breakers(const Tokenizer& tokenizer,
                                                            std::span<const std::string> texts) {
  std::vector<std::vector<TokenId>> breakers;
  for (const std::string& text : texts) STRATA_TRY(add_breakers(tokenizer, text, breakers));
  std::ranges::sort(breakers);
  breakers.erase(std::unique(breakers.begin(), breakers.end()), breakers.end());
  return breakers;
}

}  // namespace strata
