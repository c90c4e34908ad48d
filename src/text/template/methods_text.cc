#include "text/template/methods_text.h"

#include <cstring>

#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

// Maps every code point; `change` sees the code point and appends what replaces it.
template <typename Change>
Text map_text(Runtime& runtime, const Text& text, Change change) {
  Text out;
  text.for_each_span([&](std::string_view bytes, bool content) {
    std::string changed;
    changed.reserve(bytes.size());
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      change(changed, c.value);
      at += c.bytes;
    }
    runtime.append(out, changed, content);
  });
  return out;
}

void append_upper(std::string& out, char32_t c) {
  if (c == 0xDF) {
    out += "SS";
  } else {
    append_utf8(out, to_upper(c));
  }
}

}  // namespace

Text upper(Runtime& runtime, const Text& text) { return map_text(runtime, text, append_upper); }

Text lower(Runtime& runtime, const Text& text) {
  return map_text(runtime, text,
                  [](std::string& out, char32_t c) { append_utf8(out, to_lower(c)); });
}

Text capitalize(Runtime& runtime, const Text& text) {
  bool first = true;
  return map_text(runtime, text, [&](std::string& out, char32_t c) {
    if (std::exchange(first, false)) {
      append_upper(out, c);
    } else {
      append_utf8(out, to_lower(c));
    }
  });
}

Text strip(Runtime& runtime, const Text& text, std::optional<std::string_view> characters,
           Side side) {
  std::string_view bytes = text.view();
  const auto strips = [&](std::size_t at, std::size_t count) {
    if (!characters) return is_space(code_point_at(bytes, at).value);
    runtime.work_on(*characters);
    return characters->find(bytes.substr(at, count)) != std::string_view::npos;
  };
  std::size_t start = 0;
  std::size_t end = bytes.size();
  while (side != Side::kRight && start < end) {
    const std::size_t count = code_point_at(bytes, start).bytes;
    if (!strips(start, count)) break;
    start += count;
  }
  while (side != Side::kLeft && start < end) {
    const std::size_t last = previous_code_point(bytes, end);
    if (last < start || !strips(last, end - last)) break;
    end = last;
  }
  runtime.work((text.size() - (end - start)) / 64);
  return text.substr(start, end - start);
}

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  if (text.size() - from < needle.size()) return std::string_view::npos;
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

Text replace(Runtime& runtime, const Text& text, const Text& from, const Text& to,
             std::int64_t count) {
  runtime.work_on(text.view());
  Text out;
  std::size_t done = 0;
  std::size_t search = 0;
  for (; count != 0; --count) {
    const std::size_t found = find_text(text.view(), from.view(), search);
    if (found == std::string_view::npos) break;
    runtime.work(1);
    runtime.append(out, text, done, found - done);
    runtime.append(out, to);
    done = found + from.size();
    search = done;
    if (from.empty()) {
      if (found >= text.size()) break;
      search = found + code_point_at(text.view(), found).bytes;
    }
  }
  runtime.append(out, text, done, text.size() - done);
  return out;
}

Line line_at(std::string_view text, std::size_t start) {
  for (std::size_t at = start; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    std::size_t next = at + c.bytes;
    if (is_line_break(c.value)) {
      if (c.value == '\r' && next < text.size() && text[next] == '\n') ++next;
      return {start, at, next};
    }
    at = next;
  }
  return {start, text.size(), text.size()};
}

}  // namespace strata::jinja
