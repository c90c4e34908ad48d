#include "text/tokenizer/spm.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer/escaped_space.h"

namespace strata {
namespace {

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
    : add_space_prefix_(add_space_prefix),
      priority_(rank_scores(vocabulary.tokens)),
      fallback_(vocabulary) {
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const Token& token = vocabulary.tokens[id];
    const std::string_view text = token.text;
    if (text.empty() || !(token.is_ordinary() || token.kind == TokenKind::kUserDefined)) continue;
    tokens_.insert(text, id);
    longest_ = std::max(longest_, text.size());
    cutter_.add(text);
  }
}

Status SpmModel::encode(std::string_view text, bool starts_segment, EncodeScratch& scratch,
                        std::vector<TokenId>& out) const {
  std::string escaped = escape_spaces(text);
  if (starts_segment && add_space_prefix_) escaped.insert(0, kEscapedSpace);
  std::string_view rest = escaped;
  while (!rest.empty()) {
    const std::string_view segment = rest.substr(0, cutter_.next_cut(rest));
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
    const std::size_t bytes = utf8_step(text.substr(at));
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
      status = fallback_.append(text.substr(symbol.start, symbol.length), out);
  });
  return status;
}

}  // namespace strata
