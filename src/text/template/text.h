// Text that knows, byte range by byte range, whether it is scaffolding (from the template or
// the engine) or content (from messages, tools and other inputs).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace strata::jinja {

class Text {
 public:
  Text() = default;
  Text(std::string bytes, bool content);

  const std::string& bytes() const { return bytes_; }
  std::string_view view() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  std::size_t span_count() const { return spans_.size(); }

  // The mark of byte `offset`; of the last byte for an offset at or past the end.
  bool content_at(std::size_t offset) const;

  void append(std::string_view bytes, bool content);
  void append(const Text& other) { append(other, 0, other.size()); }
  // Bytes [from, from + count) of `other`, clamped to its size. `other` may be *this.
  void append(const Text& other, std::size_t from, std::size_t count);
  Text substr(std::size_t from, std::size_t count = std::string::npos) const;

  // Calls visit(std::string_view bytes, bool content) for every span in order.
  template <typename Visit>
  void for_each_span(Visit visit) const {
    std::size_t start = 0;
    for (const Span& span : spans_) {
      visit(view().substr(start, span.end - start), span.content);
      start = span.end;
    }
  }

 private:
  struct Span {
    std::size_t end;  // byte offset; a span starts where the one before it ends
    bool content;
  };

  std::size_t span_at(std::size_t offset) const;

  std::string bytes_;
  std::vector<Span> spans_;  // neighbours differ in their marks; none is empty
};

}  // namespace strata::jinja
