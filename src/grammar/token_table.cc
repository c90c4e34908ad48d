#include "grammar/token_table.h"

#include <algorithm>
#include <utility>

namespace strata {

TokenTable::TokenTable(std::vector<std::string> bytes, std::vector<TokenId> ends,
                       const std::vector<TokenId>& specials)
    : bytes_(std::move(bytes)), ends_(std::move(ends)) {
  std::erase_if(ends_, [&](TokenId token) { return !contains(token); });
  std::ranges::sort(ends_);
  ends_.erase(std::unique(ends_.begin(), ends_.end()), ends_.end());
  std::vector<bool> left_out(size());
  for (const auto* list : {&std::as_const(ends_), &specials})
    for (const TokenId token : *list)
      if (contains(token)) left_out[static_cast<std::size_t>(token)] = true;
  for (std::size_t i = 0; i < size(); ++i)
    if (!left_out[i] && !bytes_[i].empty() && bytes_[i].size() <= kMostBytes)
      tokens_.push_back(static_cast<TokenId>(i));
  std::ranges::stable_sort(tokens_, {}, [&](TokenId token) { return this->bytes(token); });

  const auto common_bytes = [](std::string_view before, std::string_view text) {
    return static_cast<std::size_t>(std::ranges::mismatch(before, text).in2 - text.begin());
  };
  std::string_view before;
  std::size_t nodes = 1;
  for (const TokenId token : tokens_) {
    const std::string_view text = this->bytes(token);
    nodes += text.size() - common_bytes(std::exchange(before, text), text);
  }
  nodes_.reserve(nodes);
  std::vector<std::uint32_t> path;  // open nodes, by depth
  before = {};
  const auto close_to = [&](std::size_t depth) {
    for (; path.size() > depth; path.pop_back())
      nodes_[path.back()].end = static_cast<std::uint32_t>(nodes_.size());
  };
  for (std::uint32_t rank = 0; rank < tokens_.size(); ++rank) {
    const std::string_view text = this->bytes(tokens_[rank]);
    close_to(common_bytes(before, text));
    for (std::size_t i = path.size(); i < text.size(); ++i) {
      path.push_back(static_cast<std::uint32_t>(nodes_.size()));
      nodes_.push_back(
          {0, rank, static_cast<std::uint16_t>(i + 1), static_cast<std::uint8_t>(text[i])});
    }
    longest_ = std::max(longest_, text.size());
    before = text;
  }
  close_to(0);
  nodes_.push_back({0, static_cast<std::uint32_t>(tokens_.size()), 0, 0});
}

bool TokenTable::is_end(TokenId token) const { return std::ranges::binary_search(ends_, token); }

}  // namespace strata
