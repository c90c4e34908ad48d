#include "text/tokenizer/detokenizer.h"

#include <utility>

#include "base/utf8.h"

namespace strata {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

std::string Detokenizer::push(TokenId id) {
  if (!tokenizer_->contains(id)) return {};
  std::string_view bytes = tokenizer_->token_bytes(id, options_.include_special);
  if (at_start_ && tokenizer_->token_kind(id) != TokenKind::kControl) {
    at_start_ = false;
    if (options_.strip_space_prefix && tokenizer_->add_space_prefix() && bytes.starts_with(' '))
      bytes.remove_prefix(1);
  }
  const std::string input = std::exchange(held_back_, {}).append(bytes);
  std::string text;
  for (std::string_view rest = input; !rest.empty();) {
    const std::size_t valid = utf8_valid_bytes(rest);
    text += rest.substr(0, valid);
    rest.remove_prefix(valid);
    if (rest.empty()) break;
    const Utf8Prefix prefix = utf8_prefix(rest);
    if (prefix.kind == Utf8Prefix::Kind::kIncomplete) {
      held_back_ = rest;
      break;
    }
    text += kReplacement;
    rest.remove_prefix(prefix.bytes);
  }
  return text;
}

std::string Detokenizer::finish(End end) {
  const bool replace = end == End::kComplete && !held_back_.empty();
  held_back_.clear();
  at_start_ = true;
  return std::string(replace ? kReplacement : "");
}

}  // namespace strata
