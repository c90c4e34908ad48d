#include "text/sequence_breakers.h"

#include <algorithm>

#include "base/printable.h"

namespace strata {
namespace {

constexpr std::size_t kMostTextBytes = 40;

// The parts of text number `number` that a token of these bytes can be.
void add_parts(TokenId token, std::string_view bytes, std::string_view text, std::size_t number,
               std::vector<BreakerPart>& parts) {
  const auto add = [&](std::size_t from, std::size_t to) {
    parts.push_back({token, static_cast<std::int32_t>(number), static_cast<std::int32_t>(from),
                     to < text.size() ? static_cast<std::int32_t>(to) : BreakerPart::kOutside});
  };
  if (bytes.find(text) != std::string_view::npos) add(BreakerPart::kOutside, text.size());
  for (std::size_t at = 1; at < text.size(); ++at) {
    const std::string_view rest = text.substr(at);
    if (bytes.ends_with(text.substr(0, at))) add(BreakerPart::kOutside, at);
    if (bytes.starts_with(rest))
      add(at, text.size());
    else if (rest.starts_with(bytes))
      add(at, at + bytes.size());
  }
}

}  // namespace

Result<std::vector<BreakerPart>> sequence_breakers(const Tokenizer& tokenizer,
                                                   std::vector<std::string> texts) {
  for (const std::string& text : texts)
    if (text.empty() || text.size() > kMostTextBytes)
      return invalid_argument("the sequence breaker '{}' has {} bytes; 1 to {} are possible",
                              printable(text, kMostTextBytes), text.size(), kMostTextBytes);
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  std::vector<BreakerPart> parts;
  for (TokenId id = 0; id < tokenizer.vocabulary_size(); ++id) {
    const std::string_view bytes = tokenizer.token_bytes(id, true);
    if (bytes.empty()) continue;
    for (std::size_t i = 0; i < texts.size(); ++i) add_parts(id, bytes, texts[i], i, parts);
  }
  std::ranges::sort(parts);
  return parts;
}

}  // namespace strata
