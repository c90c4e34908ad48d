#include "text/template/text.h"

#include <algorithm>
#include <utility>

namespace strata::jinja {

Text::Text(std::string bytes, bool content) : bytes_(std::move(bytes)) {
  if (!bytes_.empty()) spans_.push_back({bytes_.size(), content});
}

std::size_t Text::span_at(std::size_t offset) const {
  const auto found = std::upper_bound(spans_.begin(), spans_.end(), offset,
                                      [](std::size_t at, const Span& s) { return at < s.end; });
  return static_cast<std::size_t>(found - spans_.begin());
}

bool Text::content_at(std::size_t offset) const {
  if (spans_.empty()) return false;
  return spans_[std::min(span_at(offset), spans_.size() - 1)].content;
}

void Text::append(std::string_view bytes, bool content) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (!spans_.empty() && spans_.back().content == content) {
    spans_.back().end = bytes_.size();
  } else {
    spans_.push_back({bytes_.size(), content});
  }
}

void Text::append(const Text& other, std::size_t from, std::size_t count) {
  if (&other == this) return append(Text(*this), from, count);
  from = std::min(from, other.size());
  const std::size_t end = from + std::min(count, other.size() - from);
  for (std::size_t span = other.span_at(from); from < end; ++span) {
    const std::size_t stop = std::min(end, other.spans_[span].end);
    append(other.view().substr(from, stop - from), other.spans_[span].content);
    from = stop;
  }
}

Text Text::substr(std::size_t from, std::size_t count) const {
  Text out;
  out.append(*this, from, count);
  return out;
}

}  // namespace strata::jinja
