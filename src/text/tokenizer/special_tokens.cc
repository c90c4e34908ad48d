#include "text/tokenizer/special_tokens.h"

namespace strata {
namespace {

// The blanks that strip flags take along: those of C's isspace, as elsewhere.
constexpr std::string_view kBlanks = " \t\n\v\f\r";

}  // namespace

SpecialTokens::SpecialTokens(const Vocabulary& vocabulary) : tokens_(vocabulary.tokens) {
  roots_.fill(kNoNode);
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const Token& token = vocabulary.tokens[id];
    const bool is_control = token.kind == TokenKind::kControl || token.kind == TokenKind::kUnknown;
    if (!is_control && token.kind != TokenKind::kUserDefined) continue;
    if (!token.text.empty()) insert(token.text, id, is_control);
  }
}

void SpecialTokens::insert(std::string_view text, TokenId id, bool is_control) {
  std::int32_t node = kNoNode;
  for (const char byte : text) {
    std::int32_t* link =
        node == kNoNode ? &roots_[static_cast<unsigned char>(byte)] : &nodes_[node].child;
    while (*link != kNoNode && nodes_[*link].byte != byte) link = &nodes_[*link].sibling;
    if (*link == kNoNode) {
      *link = static_cast<std::int32_t>(nodes_.size());
      node = *link;  // before the vector may move what `link` points at
      nodes_.push_back({.byte = byte});
    } else {
      node = *link;
    }
  }
  TokenId& entry = is_control ? nodes_[node].control : nodes_[node].user_defined;
  if (entry == kNoToken) entry = id;
}

std::int32_t SpecialTokens::child_of(std::int32_t node, char byte) const {
  std::int32_t child = nodes_[node].child;
  while (child != kNoNode && nodes_[child].byte != byte) child = nodes_[child].sibling;
  return child;
}

TokenId SpecialTokens::longest_match(std::string_view text, std::size_t trusted_bytes) const {
  TokenId best = kNoToken;
  std::int32_t node = roots_[static_cast<unsigned char>(text[0])];
  for (std::size_t length = 1; node != kNoNode; ++length) {
    if (nodes_[node].control != kNoToken && length <= trusted_bytes)
      best = nodes_[node].control;
    else if (nodes_[node].user_defined != kNoToken)
      best = nodes_[node].user_defined;
    if (length == text.size()) break;
    node = child_of(node, text[length]);
  }
  return best;
}

std::vector<Fragment> SpecialTokens::partition(std::string_view text,
                                               std::span<const TrustedRange> trusted) const {
  std::vector<Fragment> fragments;
  std::size_t done = 0;  // text before it is in fragments
  for (std::size_t at = 0; at < text.size();) {
    while (!trusted.empty() && trusted.front().end <= at) trusted = trusted.subspan(1);
    const bool is_trusted = !trusted.empty() && trusted.front().begin <= at;
    const TokenId id = longest_match(text.substr(at), is_trusted ? trusted.front().end - at : 0);
    if (id == kNoToken) {
      ++at;
      continue;
    }
    const Token& token = tokens_[id];
    std::string_view before = text.substr(done, at - done);
    if (token.strip_left) before = before.substr(0, before.find_last_not_of(kBlanks) + 1);
    if (!before.empty()) fragments.push_back({kNoToken, before});
    fragments.push_back({id, text.substr(at, token.text.size())});
    at += token.text.size();
    if (token.strip_right) at = std::min(text.find_first_not_of(kBlanks, at), text.size());
    done = at;
  }
  if (done < text.size()) fragments.push_back({kNoToken, text.substr(done)});
  return fragments;
}

}  // namespace strata
