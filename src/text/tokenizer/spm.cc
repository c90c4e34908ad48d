#include "text/tokenizer/spm.h"

#include <algorithm>

#include "base/printable.h"
#include "base/utf8.h"
#include "text/tokenizer/escaped_space.h"

namespace strata {
namespace {

bool is_ordinary(const Token& token) {
  return !token.text.empty() &&
         (token.kind == TokenKind::kNormal || token.kind == TokenKind::kUndefined ||
          token.kind == TokenKind::kUserDefined);
}

std::vector<std::uint32_t> rank_scores(const std::vector<Token>& tokens) {
  std::vector<float> scores(tokens.size());
  std::ranges::transform(tokens, scores.begin(), &Token::score);
  std::ranges::sort(scores, std::greater<>());
  std::vector<std::uint32_t> ranks(tokens.size());
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const auto place = std::ranges::lower_bound(scores, tokens[id].score, std::greater<>());
    ranks[id] = static_cast<std::uint32_t>(place - scores.begin());
  }
  return ranks;
}

}  // namespace

SpmModel::SpmModel(const Vocabulary& vocabulary, bool add_space_prefix)
    : vocabulary_(vocabulary),
      add_space_prefix_(add_space_prefix),
      priority_(rank_scores(vocabulary.tokens)),
      byte_tokens_(byte_tokens(vocabulary)) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const std::string_view text = vocabulary.tokens[id].text;
    if (!is_ordinary(vocabulary.tokens[id])) continue;
    tokens_.insert(text, id);
    longest_ = std::max(longest_, text.size());
    for (std::size_t at = text.find(kEscapedSpace, 1); at != text.npos;
         at = text.find(kEscapedSpace, at + 1))
      joins_space_[static_cast<unsigned char>(text[at - 1])] = true;
  }
}

// Merging goes by neighbours only, so the text may be cut before a space that no token contains
// after the byte there; the result is that of merging the whole, without its one big queue.
std::size_t SpmModel::next_cut(std::string_view text) const {
  for (std::size_t at = text.find(kEscapedSpace, 1); at != text.npos;
       at = text.find(kEscapedSpace, at + 1))
    if (!joins_space_[static_cast<unsigned char>(text[at - 1])]) return at;
  return text.size();
}

Status SpmModel::encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                        std::vector<TokenId>& out) const {
  std::string escaped = escape_spaces(text);
  if (starts_segment && add_space_prefix_) escaped.insert(0, kEscapedSpace);
  std::string_view rest = escaped;
  while (!rest.empty()) {
    const std::string_view segment = rest.substr(0, next_cut(rest));
    rest.remove_prefix(segment.size());
    if (scratch.cache.append(segment, out)) continue;
    const std::size_t before = out.size();
    STRATA_TRY(encode_segment(segment, scratch.merger, out));
    scratch.cache.insert(segment, std::span(out).subspan(before));
  }
  return {};
}

Status SpmModel::encode_segment(std::string_view text, Merger& merger,
                                std::vector<TokenId>& out) const {
  merger.clear();
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Prefix prefix = utf8_prefix(text.substr(at));
    const std::size_t bytes = prefix.kind == Utf8Prefix::Kind::kCharacter ? prefix.bytes : 1;
    merger.add({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(bytes),
                tokens_.find(text.substr(at, bytes))});
    at += bytes;
  }
  merger.merge([&](const Symbol& left, const Symbol& right) -> std::optional<Merge> {
    const std::size_t bytes = std::size_t{left.length} + right.length;
    if (bytes > longest_) return std::nullopt;
    const TokenId id = tokens_.find(text.substr(left.start, bytes));
    if (id == TextTable::kNone) return std::nullopt;
    return Merge{priority_[id], id};
  });
  Status status;
  merger.for_each([&](const Symbol& symbol) {
    if (symbol.id != TextTable::kNone)
      out.push_back(symbol.id);
    else if (status.ok())
      status = append_bytes(text.substr(symbol.start, symbol.length), out);
  });
  return status;
}

Status SpmModel::append_bytes(std::string_view bytes, std::vector<TokenId>& out) const {
  const auto has_token = [&](char c) {
    return byte_tokens_[static_cast<unsigned char>(c)] != kNoToken;
  };
  if (std::ranges::all_of(bytes, has_token)) {
    for (const char c : bytes) out.push_back(byte_tokens_[static_cast<unsigned char>(c)]);
    return {};
  }
  const TokenId unknown = vocabulary_.unknown_text_token();
  if (unknown == kNoToken)
    return invalid_argument("the text holds `{}`, for which the vocabulary has no token",
                            printable(bytes));
  out.push_back(unknown);
  return {};
}

}  // namespace strata
