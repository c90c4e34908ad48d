// The methods of str.
#include <algorithm>

#include "text/template/error.h"
#include "text/template/format.h"
#include "text/template/methods.h"
#include "text/template/methods_text.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

Value like(Runtime& runtime, const Value& self, Text text) {
  return runtime.string(std::move(text), self.is_markup());
}

bool given(const Value* value) { return value != nullptr && !value->is(Type::kNone); }

template <Text (*kChange)(Runtime&, const Text&)>
Value changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind(arguments, "method", {});
  return like(runtime, self, kChange(runtime, self.text()));
}

template <Side kSide>
Value stripped(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "strip", {"chars"});
  std::optional<std::string_view> characters;
  if (given(args[0])) characters = expect_string(*args[0], "strip").view();
  return like(runtime, self, strip(runtime, self.text(), characters, kSide));
}

// A part of the text between two code point positions, as the start and end arguments of find.
struct Window {
  std::size_t from, to;  // byte offsets
};
Window window(Runtime& runtime, std::string_view text, const Value* start, const Value* end) {
  Window out{0, text.size()};
  if (!given(start) && !given(end)) return out;
  runtime.work_on(text);
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const auto offset = [&](const Value* value, std::size_t fallback) {
    if (!given(value)) return fallback;
    const std::int64_t at = expect_integer(*value, "find");
    const std::int64_t index = std::clamp<std::int64_t>(at < 0 ? at + size : at, 0, size);
    return offset_of(text, static_cast<std::size_t>(index));
  };
  out.from = offset(start, 0);
  out.to = std::max(out.from, offset(end, text.size()));
  return out;
}

template <bool kAtStart>
Value has_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::string_view function = kAtStart ? "startswith" : "endswith";
  const auto args = bind(arguments, function, {"prefix", "start", "end"});
  if (args[0] == nullptr) fail("{}() needs an argument", function);
  const Window part = window(runtime, self.bytes(), args[1], args[2]);
  const std::string_view text = self.bytes().substr(part.from, part.to - part.from);
  const auto matches = [&](const Value& affix) {
    const std::string_view wanted = expect_string(affix, function).view();
    runtime.work_on(wanted);
    return kAtStart ? text.starts_with(wanted) : text.ends_with(wanted);
  };
  if (!args[0]->is(Type::kSequence) || !args[0]->sequence().is_tuple())
    return Value(matches(*args[0]));
  const auto& affixes = args[0]->sequence().items;
  return Value(std::any_of(affixes.begin(), affixes.end(), matches));
}

// Searching backwards compares the whole needle at every place.
void work_backwards(Runtime& runtime, std::string_view text, std::string_view needle) {
  runtime.work((text.size() / 64 + 1) * (needle.size() / 16 + 1));
}

// The byte offset of the first or last match in the window, or npos.
std::size_t search(Runtime& runtime, const Value& self, const Arguments& arguments,
                   std::string_view function, bool last) {
  const auto args = bind(arguments, function, {"sub", "start", "end"});
  if (args[0] == nullptr) fail("{}() needs an argument", function);
  const std::string_view wanted = expect_string(*args[0], function).view();
  const Window part = window(runtime, self.bytes(), args[1], args[2]);
  const std::string_view text = self.bytes().substr(0, part.to);
  runtime.work_on(text);
  if (!last) return find_text(text, wanted, part.from);
  work_backwards(runtime, text, wanted);
  const std::size_t found = text.rfind(wanted);
  return found != std::string_view::npos && found >= part.from ? found : std::string_view::npos;
}

template <bool kLast, bool kMustExist>
Value find(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const std::size_t found = search(runtime, self, arguments, kMustExist ? "index" : "find", kLast);
  if (found != std::string_view::npos)
    return Value(static_cast<std::int64_t>(count_code_points(self.bytes().substr(0, found))));
  if (kMustExist) fail("substring not found");
  return Value(std::int64_t{-1});
}

Value count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "count", {"sub"});
  if (args[0] == nullptr) fail("count() needs an argument");
  const std::string_view wanted = expect_string(*args[0], "count").view();
  runtime.work_on(self.bytes());
  if (wanted.empty()) return Value(length(runtime, self) + 1);
  std::int64_t total = 0;
  std::size_t at = 0;
  while ((at = find_text(self.bytes(), wanted, at)) != std::string_view::npos) {
    ++total;
    at += wanted.size();
  }
  return Value(total);
}

Value replaced(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "replace", {"old", "new", "count"});
  if (args[1] == nullptr) fail("replace() needs two arguments");
  const std::int64_t count = given(args[2]) ? expect_integer(*args[2], "replace") : -1;
  return like(runtime, self,
              replace(runtime, self.text(), expect_string(*args[0], "replace"),
                      expect_string(*args[1], "replace"), count));
}

// Collects the parts of a text as values of their own.
class Parts {
 public:
  Parts(Runtime& runtime, const Value& self) : runtime_(runtime), self_(self) {}
  void add(std::size_t from, std::size_t to) {
    parts_.push_back(like(runtime_, self_, self_.text().substr(from, to - from)));
  }
  std::int64_t count() const { return static_cast<std::int64_t>(parts_.size()); }
  Value take() { return runtime_.list(std::move(parts_)); }
  Value take_reversed() {
    return runtime_.list(std::vector<Value>(parts_.rbegin(), parts_.rend()));
  }

 private:
  Runtime& runtime_;
  const Value& self_;
  std::vector<Value> parts_;
};

// The end of the run of spaces, or of anything else, that starts at `at`.
std::size_t run_end(std::string_view text, std::size_t at, bool of_space) {
  while (at < text.size()) {
    const CodePoint c = code_point_at(text, at);
    if (is_space(c.value) != of_space) break;
    at += c.bytes;
  }
  return at;
}

// The same backwards: where the run that ends at `at` starts.
std::size_t run_start(std::string_view text, std::size_t at, bool of_space) {
  while (at > 0) {
    const std::size_t before = previous_code_point(text, at);
    if (is_space(code_point_at(text, before).value) != of_space) break;
    at = before;
  }
  return at;
}

// most < 0: as often as possible.
Value split_at_spaces(Parts parts, std::string_view text, std::int64_t most) {
  for (std::size_t at = run_end(text, 0, true); at < text.size();) {
    if (parts.count() == most) {
      parts.add(at, text.size());
      break;
    }
    const std::size_t end = run_end(text, at, false);
    parts.add(at, end);
    at = run_end(text, end, true);
  }
  return parts.take();
}

Value rsplit_at_spaces(Parts parts, std::string_view text, std::int64_t most) {
  for (std::size_t at = run_start(text, text.size(), true); at > 0;) {
    if (parts.count() == most) {
      parts.add(0, at);
      break;
    }
    const std::size_t start = run_start(text, at, false);
    parts.add(start, at);
    at = run_start(text, start, true);
  }
  return parts.take_reversed();
}

Value split_at(Parts parts, std::string_view text, std::string_view separator, std::int64_t most) {
  std::size_t at = 0;
  while (parts.count() != most) {
    const std::size_t found = find_text(text, separator, at);
    if (found == std::string_view::npos) break;
    parts.add(at, found);
    at = found + separator.size();
  }
  parts.add(at, text.size());
  return parts.take();
}

Value rsplit_at(Parts parts, std::string_view text, std::string_view separator, std::int64_t most) {
  std::size_t end = text.size();
  while (parts.count() != most) {
    const std::size_t found = text.substr(0, end).rfind(separator);
    if (found == std::string_view::npos) break;
    parts.add(found + separator.size(), end);
    end = found;
  }
  parts.add(0, end);
  return parts.take_reversed();
}

template <bool kFromRight>
Value split(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "split", {"sep", "maxsplit"});
  const std::int64_t most =
      given(args[1]) ? std::max<std::int64_t>(-1, expect_integer(*args[1], "split")) : -1;
  const std::string_view text = self.bytes();
  const bool from_right = kFromRight && most >= 0;
  runtime.work_on(text);
  if (!given(args[0])) {
    return from_right ? rsplit_at_spaces({runtime, self}, text, most)
                      : split_at_spaces({runtime, self}, text, most);
  }
  const std::string_view separator = expect_string(*args[0], "split").view();
  if (separator.empty()) fail("empty separator");
  if (!from_right) return split_at({runtime, self}, text, separator, most);
  work_backwards(runtime, text, separator);
  return rsplit_at({runtime, self}, text, separator, most);
}

Value splitlines(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "splitlines", {"keepends"});
  const bool keeps_ends = args[0] != nullptr && truth(*args[0]);
  runtime.work_on(self.bytes());
  Parts parts(runtime, self);
  for (std::size_t at = 0; at < self.text().size();) {
    const Line line = line_at(self.bytes(), at);
    parts.add(at, keeps_ends ? line.next : line.end);
    at = line.next;
  }
  return parts.take();
}

template <bool kFromRight>
Value partition(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "partition", {"sep"});
  if (args[0] == nullptr) fail("partition() needs an argument");
  const std::string_view separator = expect_string(*args[0], "partition").view();
  if (separator.empty()) fail("empty separator");
  const std::size_t found = search(runtime, self, arguments, "partition", kFromRight);
  const Value nothing = like(runtime, self, Text());
  if (found == std::string_view::npos) {
    return runtime.tuple(kFromRight ? std::vector<Value>{nothing, nothing, self}
                                    : std::vector<Value>{self, nothing, nothing});
  }
  return runtime.tuple({like(runtime, self, self.text().substr(0, found)),
                        like(runtime, self, self.text().substr(found, separator.size())),
                        like(runtime, self, self.text().substr(found + separator.size()))});
}

template <bool kPrefix>
Value without_affix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "removeprefix", {"affix"});
  if (args[0] == nullptr) fail("removeprefix() needs an argument");
  const std::string_view affix = expect_string(*args[0], "removeprefix").view();
  const bool there = kPrefix ? self.bytes().starts_with(affix) : self.bytes().ends_with(affix);
  if (!there) return self;
  return like(runtime, self,
              self.text().substr(kPrefix ? affix.size() : 0, self.text().size() - affix.size()));
}

Value joined(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "join", {"iterable"});
  if (args[0] == nullptr) fail("join() needs an argument");
  Text out;
  std::size_t count = 0;
  for (const Value& item : iterate(runtime, *args[0])) {
    if (!item.is(Type::kString))
      fail("sequence item {}: expected str instance, {} found", count, type_name(item));
    if (count++ != 0) runtime.append(out, self.text());
    runtime.append(out, self.is_markup() ? escape_markup(runtime, item) : item.text());
  }
  return like(runtime, self, std::move(out));
}

// Upper case after what is no letter, lower case after a letter.
Text title(Runtime& runtime, const Text& text) {
  Text out;
  bool after_letter = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.view(), at);
    std::string changed;
    append_utf8(changed, after_letter ? to_lower(c.value) : to_upper(c.value));
    runtime.append(out, changed, text.content_at(at));
    after_letter = is_upper(c.value) || is_lower(c.value);
    at += c.bytes;
  }
  return out;
}

Text swapcase(Runtime& runtime, const Text& text) {
  Text out;
  text.for_each_span([&](std::string_view bytes, bool content) {
    std::string changed;
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      append_utf8(changed, is_upper(c.value) ? to_lower(c.value) : to_upper(c.value));
      at += c.bytes;
    }
    runtime.append(out, changed, content);
  });
  return out;
}

// Pads to a width in code points; < leaves the text at the left.
template <char kAlign>
Value justified(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "center", {"width", "fillchar"});
  if (args[0] == nullptr) fail("center() needs a width");
  const std::int64_t width = expect_integer(*args[0], "center");
  const Text space(kAlign == '0' ? "0" : " ", false);
  const Text& fill = args[1] != nullptr ? expect_string(*args[1], "center") : space;
  const std::int64_t missing = std::max<std::int64_t>(0, width - length(runtime, self));
  if (static_cast<std::uint64_t>(missing) > runtime.limits().text_bytes)
    fail_limit("a text cannot be padded to {} characters", width);
  const bool is_signed =
      kAlign == '0' && !self.text().empty() && (self.bytes()[0] == '-' || self.bytes()[0] == '+');
  // CPython puts the odd space of center() to the left only where the width is odd.
  const std::int64_t before = kAlign == '<'   ? 0
                              : kAlign == '^' ? missing / 2 + (missing & width & 1)
                                              : missing;
  Text out = self.text().substr(0, is_signed ? 1 : 0);
  for (std::int64_t i = 0; i < before; ++i) runtime.append(out, fill);
  runtime.append(out, self.text(), is_signed ? 1 : 0, self.text().size());
  for (std::int64_t i = before; i < missing; ++i) runtime.append(out, fill);
  return like(runtime, self, std::move(out));
}

// Whether all code points, at least one, are of a class.
template <bool (*kIs)(char32_t)>
Value all_are(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind(arguments, "method", {});
  runtime.work_on(self.bytes());
  for (std::size_t at = 0; at < self.text().size();) {
    const CodePoint c = code_point_at(self.bytes(), at);
    if (!kIs(c.value)) return Value(false);
    at += c.bytes;
  }
  return Value(!self.text().empty());
}

bool is_alphanumeric(char32_t c) { return is_letter(c) || is_digit(c); }

// At least one letter of the case, and none of the other.
template <bool kUpper>
Value is_in_case(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind(arguments, "method", {});
  return Value(has_case(runtime, self.text(), kUpper));
}

}  // namespace

bool has_case(Runtime& runtime, const Text& text, bool upper_case) {
  runtime.work_on(text.view());
  bool found = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.view(), at);
    if (upper_case ? is_lower(c.value) : is_upper(c.value)) return false;
    found |= upper_case ? is_upper(c.value) : is_lower(c.value);
    at += c.bytes;
  }
  return found;
}

Method find_string_method(std::string_view name) {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"capitalize", changed<capitalize>},
      {"casefold", changed<lower>},
      {"center", justified<'^'>},
      {"count", count},
      {"endswith", has_affix<false>},
      {"find", find<false, false>},
      {"format", brace_format},
      {"index", find<false, true>},
      {"isalnum", all_are<is_alphanumeric>},
      {"isalpha", all_are<is_letter>},
      {"isdecimal", all_are<is_digit>},
      {"isdigit", all_are<is_digit>},
      {"islower", is_in_case<false>},
      {"isnumeric", all_are<is_digit>},
      {"isspace", all_are<is_space>},
      {"isupper", is_in_case<true>},
      {"join", joined},
      {"ljust", justified<'<'>},
      {"lower", changed<lower>},
      {"lstrip", stripped<Side::kLeft>},
      {"partition", partition<false>},
      {"removeprefix", without_affix<true>},
      {"removesuffix", without_affix<false>},
      {"replace", replaced},
      {"rfind", find<true, false>},
      {"rindex", find<true, true>},
      {"rjust", justified<'>'>},
      {"rpartition", partition<true>},
      {"rsplit", split<true>},
      {"rstrip", stripped<Side::kRight>},
      {"split", split<false>},
      {"splitlines", splitlines},
      {"startswith", has_affix<true>},
      {"strip", stripped<Side::kBoth>},
      {"swapcase", changed<swapcase>},
      {"title", changed<title>},
      {"upper", changed<upper>},
      {"zfill", justified<'0'>},
  };
  return find_named(kMethods, name);
}

}  // namespace strata::jinja
