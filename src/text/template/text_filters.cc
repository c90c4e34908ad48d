// Filters that make text of their input.
#include <algorithm>

#include "text/template/error.h"
#include "text/template/filters.h"
#include "text/template/format.h"
#include "text/template/json.h"
#include "text/template/methods.h"
#include "text/template/methods_text.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

bool given(const Value* value) { return value != nullptr && !value->is(Type::kNone); }
bool flag(const Value* value) { return value != nullptr && truth(*value); }

template <Text (*kChange)(Runtime&, const Text&)>
Value changed(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "filter", {});
  return runtime.string(kChange(runtime, to_text(runtime, input)), input.is_markup());
}

// Unlike str.title, a word starts only at the start, after a space, a dash or an open bracket.
Text title(Runtime& runtime, const Text& text) {
  Text out;
  bool at_start = true;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.view(), at);
    std::string one;
    append_utf8(one, at_start ? to_upper(c.value) : to_lower(c.value));
    runtime.append(out, one, text.content_at(at));
    at_start = is_space(c.value) ||
               (c.value < 0x80 && std::string_view("-({[<").find(static_cast<char>(c.value)) !=
                                      std::string_view::npos);
    at += c.bytes;
  }
  return out;
}

Value trim(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "trim", {"chars"});
  std::optional<std::string_view> characters;
  if (given(args[0])) characters = expect_string(*args[0], "trim").view();
  return runtime.string(strip(runtime, to_text(runtime, input), characters, Side::kBoth),
                        input.is_markup());
}

Value replaced(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "replace", {"old", "new", "count"});
  if (args[1] == nullptr) fail("replace needs two arguments");
  const std::int64_t count = given(args[2]) ? expect_integer(*args[2], "replace") : -1;
  return runtime.string(replace(runtime, to_text(runtime, input), to_text(runtime, *args[0]),
                                to_text(runtime, *args[1]), count));
}

Value joined(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "join", {"d", "attribute"});
  const Text separator = args[0] == nullptr ? Text() : to_text(runtime, *args[0]);
  Text out;
  bool first = true;
  for (const Value& item : iterate(runtime, input)) {
    if (!std::exchange(first, false)) runtime.append(out, separator);
    runtime.append(
        out, to_text(runtime, given(args[1]) ? attribute_at_path(runtime, item, *args[1]) : item));
  }
  return runtime.string(std::move(out));
}

Value to_string(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "string", {});
  return input.is(Type::kString) ? input : runtime.string(to_text(runtime, input));
}

Value safe(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "safe", {});
  return runtime.string(to_text(runtime, input), true);
}

Value escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "escape", {});
  return runtime.string(escape_markup(runtime, input), true);
}

Value forced_escape(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "forceescape", {});
  const Value plain = runtime.string(to_text(runtime, input));
  return runtime.string(escape_markup(runtime, plain), true);
}

Value format(Runtime& runtime, const Value& input, const Arguments& arguments) {
  if (!arguments.positional.empty() && !arguments.named.empty())
    fail("can't handle positional and keyword arguments at the same time");
  const Value text = input.is(Type::kString) ? input : runtime.string(to_text(runtime, input));
  if (arguments.named.empty())
    return percent_format(runtime, text, runtime.tuple(arguments.positional));
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [name, value] : arguments.named)
    entries.emplace_back(runtime.string(name, false), value);
  return percent_format(runtime, text, runtime.dict(std::move(entries)));
}

// `count` spaces, or the text itself where the argument is one.
Text level_of(Runtime& runtime, const Value& width, std::string_view function) {
  if (width.is(Type::kString)) return width.text();
  const std::int64_t count = std::max<std::int64_t>(0, expect_integer(width, function));
  if (static_cast<std::uint64_t>(count) > runtime.limits().text_bytes)
    fail_limit("{} by {} characters is too much", function, count);
  return Text(std::string(static_cast<std::size_t>(count), ' '), true);
}

Value indent(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "indent", {"width", "first", "blank"});
  const Text level =
      level_of(runtime, args[0] != nullptr ? *args[0] : Value(std::int64_t{4}), "indent");
  const Text& text = expect_string(input, "indent");
  runtime.work_on(text.view());
  Text out;
  if (flag(args[1])) runtime.append(out, level);
  // Like Jinja, which adds a line break before it splits: a last empty line counts.
  for (std::size_t at = 0; at <= text.size();) {
    const Line line = at < text.size() ? line_at(text.view(), at) : Line{at, at, at + 1};
    if (at != 0) runtime.append(out, "\n", true);
    if (at != 0 && (flag(args[2]) || line.end > at)) runtime.append(out, level);
    runtime.append(out, text, at, line.end - at);
    at = line.next > line.end ? line.next : text.size() + 1;
  }
  return runtime.string(std::move(out), input.is_markup());
}

Value truncate(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "truncate", {"length", "killwords", "end", "leeway"});
  const std::int64_t most = args[0] != nullptr ? expect_integer(*args[0], "truncate") : 255;
  const Text end = args[2] != nullptr ? expect_string(*args[2], "truncate") : Text("...", false);
  const std::int64_t leeway = given(args[3]) ? expect_integer(*args[3], "truncate") : 5;
  const Text& text = expect_string(input, "truncate");
  const auto end_size = static_cast<std::int64_t>(count_code_points(end.view()));
  if (most < end_size || leeway < 0) fail("truncate: expected length >= {}", end_size);
  const std::int64_t size = length(runtime, input);
  if (size <= most || size - most <= leeway) return input;
  Text kept = text.substr(0, offset_of(text.view(), static_cast<std::size_t>(most - end_size)));
  if (!flag(args[1])) {
    const std::size_t space = kept.view().rfind(' ');
    if (space != std::string_view::npos) kept = kept.substr(0, space);
  }
  runtime.append(kept, end);
  return runtime.string(std::move(kept), input.is_markup());
}

Value center(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "center", {"width"});
  Arguments width;
  width.positional.push_back(args[0] != nullptr ? *args[0] : Value(std::int64_t{80}));
  return find_string_method("center")(runtime, runtime.string(to_text(runtime, input)), width);
}

Value count_words(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "wordcount", {});
  const Text text = to_text(runtime, input);
  runtime.work_on(text.view());
  std::int64_t words = 0;
  bool in_word = false;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text.view(), at);
    const bool is_word = is_letter(c.value) || is_digit(c.value) || c.value == '_';
    words += is_word && !in_word ? 1 : 0;
    in_word = is_word;
    at += c.bytes;
  }
  return Value(words);
}

Text percent_encoded(Runtime& runtime, const Text& text, bool for_query) {
  Text out;
  text.for_each_span([&](std::string_view bytes, bool content) {
    std::string encoded;
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      const bool plain =
          byte < 0x80 && (is_letter(byte) || is_digit(byte) ||
                          std::string_view("_.-~").find(c) != std::string_view::npos);
      if (plain || (c == '/' && !for_query)) {
        encoded += c;
      } else if (c == ' ' && for_query) {
        encoded += '+';
      } else {
        encoded += fmt::format("%{:02X}", static_cast<unsigned>(byte));
      }
    }
    runtime.append(out, encoded, content);
  });
  return out;
}

Value urlencode(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "urlencode", {});
  if (!input.is(Type::kDict))
    return runtime.string(percent_encoded(runtime, to_text(runtime, input), false));
  Text out;
  for (const auto& [key, value] : input.dict().entries) {
    if (!out.empty()) runtime.append(out, "&", true);
    runtime.append(out, percent_encoded(runtime, to_text(runtime, key), true));
    runtime.append(out, "=", true);
    runtime.append(out, percent_encoded(runtime, to_text(runtime, value), true));
  }
  return runtime.string(std::move(out));
}

Value to_json_filter(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args =
      bind(arguments, "tojson", {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ensure_ascii = flag(args[0]);
  style.sort_keys = flag(args[3]);
  if (given(args[1])) {
    style.indent = level_of(runtime, *args[1], "tojson");
    style.item_separator = Text(",", true);
  }
  if (given(args[2])) {
    const std::vector<Value> both = iterate(runtime, *args[2]);
    if (both.size() != 2) fail("tojson: separators must be two strings");
    style.item_separator = expect_string(both[0], "tojson");
    style.key_separator = expect_string(both[1], "tojson");
  }
  return runtime.string(to_json(runtime, input, style));
}

}  // namespace

FilterFunction find_text_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, FilterFunction> kFilters[] = {
      {"capitalize", changed<capitalize>},
      {"center", center},
      {"e", escape},
      {"escape", escape},
      {"forceescape", forced_escape},
      {"format", format},
      {"indent", indent},
      {"join", joined},
      {"lower", changed<lower>},
      {"replace", replaced},
      {"safe", safe},
      {"string", to_string},
      {"title", changed<title>},
      {"tojson", to_json_filter},
      {"trim", trim},
      {"truncate", truncate},
      {"upper", changed<upper>},
      {"urlencode", urlencode},
      {"wordcount", count_words},
  };
  return find_named(kFilters, name);
}

}  // namespace strata::jinja
