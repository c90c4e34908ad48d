#include "serve/call_constraint.h"

#include <algorithm>

#include "base/ascii.h"

namespace strata::serve {
namespace {

constexpr std::size_t kMostFreeText = 256;  // longer than any tag with white space before it

bool is_blank(std::string_view text) { return trimmed(text).empty(); }

}  // namespace

Result<std::span<const std::uint64_t>> CallConstraint::allowed() {
  if (call_) return call_->allowed();
  return std::span<const std::uint64_t>();
}

void CallConstraint::advance(TokenId token) {
  const TokenTable& table = *masks_->table();
  if (!table.contains(token) || table.is_end(token)) return;
  if (call_)
    call_->read(table.bytes(token));
  else
    for (const char byte : table.bytes(token)) read(byte);
}

void CallConstraint::read(char byte) {
  if (!call_) return read_free(byte);
  // A token that holds the trigger may go on as no call does.
  if (!call_->read({&byte, 1})) call_.reset();
}

void CallConstraint::read_free(char byte) {
  text_ += byte;
  const std::string_view tag = in_thinking_ ? start_.thinking.close : start_.thinking.open;
  const bool tagged = !tag.empty() && text_.ends_with(tag);
  if (tagged && (in_thinking_ || (at_start_ && is_blank(text_before(tag))))) {
    in_thinking_ = !in_thinking_;
    text_.clear();
    return;
  }
  const auto trigger = std::ranges::find_if(start_.triggers, [&](const auto& each) {
    return !in_thinking_ && text_.ends_with(each.text) && may_start(each.text);
  });
  if (trigger != start_.triggers.end()) {
    text_.clear();
    call_.emplace(masks_);
    if (!call_->read(trigger->begin)) call_.reset();
  } else if (text_.size() > kMostFreeText) {
    text_.erase(0, text_.size() - kMostFreeText / 2);
    at_start_ = in_thinking_;
  }
}

bool CallConstraint::may_start(std::string_view trigger) const {
  if (!start_.only_at_start) return true;
  if (!at_start_) return false;
  std::string_view before = trimmed(text_before(trigger));
  if (before.starts_with(start_.prefix)) before.remove_prefix(start_.prefix.size());
  return is_blank(before);
}

std::string_view CallConstraint::text_before(std::string_view tag) const {
  return std::string_view(text_).substr(0, text_.size() - tag.size());
}

}  // namespace strata::serve
