// str(), repr() and HTML escaping.
#include <charconv>
#include <cmath>

#include "text/template/error.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

class ReprWriter {
 public:
  explicit ReprWriter(Runtime& runtime) : runtime_(runtime) {}

  void write(const Value& value) {
    runtime_.work(1);
    switch (value.type()) {
      case Type::kString: return string(value.text());
      case Type::kSequence: return sequence(value.sequence());
      case Type::kDict: return dict(value.dict());
      case Type::kUndefined: return put("Undefined");
      default: return runtime_.append(out_, to_text(runtime_, value));
    }
  }
  Text take() { return std::move(out_); }

 private:
  // Punctuation belongs to the value it spells.
  void put(std::string_view text) { runtime_.append(out_, text, true); }

  void string(const Text& text) {
    const bool single = text.view().find('\'') == std::string_view::npos ||
                        text.view().find('"') != std::string_view::npos;
    const std::string_view quote = single ? "'" : "\"";
    put(quote);
    text.for_each_span([&](std::string_view bytes, bool content) { body(bytes, content, single); });
    put(quote);
  }

  void body(std::string_view bytes, bool content, bool single) {
    std::string escaped;
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      if (c.value == '\\' || (c.value == '\'' && single)) {
        escaped += '\\';
        escaped += static_cast<char>(c.value);
      } else if (c.value == '\n') {
        escaped += "\\n";
      } else if (c.value == '\r') {
        escaped += "\\r";
      } else if (c.value == '\t') {
        escaped += "\\t";
      } else if (c.value < 0x20 || (c.value >= 0x7F && c.value <= 0xA0) || c.value == 0xAD) {
        escaped += fmt::format("\\x{:02x}", static_cast<unsigned>(c.value));
      } else if (c.value != ' ' && is_space(c.value)) {
        escaped += fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
      } else {
        escaped += bytes.substr(at, c.bytes);
      }
      at += c.bytes;
    }
    runtime_.append(out_, escaped, content);
  }

  void items(const std::vector<Value>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i != 0) put(", ");
      write(values[i]);
    }
  }

  void sequence(const Sequence& sequence) {
    switch (sequence.kind) {
      case SequenceKind::kList: put("["); break;
      case SequenceKind::kTuple:
      case SequenceKind::kGroup: put("("); break;
      case SequenceKind::kRange: return range(sequence);
      case SequenceKind::kKeysView: put("dict_keys(["); break;
      case SequenceKind::kValuesView: put("dict_values(["); break;
      case SequenceKind::kItemsView: put("dict_items(["); break;
    }
    items(sequence.items);
    if (sequence.is_tuple()) return put(sequence.items.size() == 1 ? ",)" : ")");
    put(sequence.is_view() ? "])" : "]");
  }

  void range(const Sequence& sequence) {
    const auto& values = sequence.items;
    if (values.empty()) return put("range(0, 0)");
    const std::int64_t first = values.front().integer();
    const std::int64_t step = values.size() > 1 ? values[1].integer() - first : 1;
    const std::int64_t end = values.back().integer() + step;
    put(step == 1 ? fmt::format("range({}, {})", first, end)
                  : fmt::format("range({}, {}, {})", first, end, step));
  }

  void dict(const Dict& dict) {
    put("{");
    for (std::size_t i = 0; i < dict.entries.size(); ++i) {
      if (i != 0) put(", ");
      write(dict.entries[i].first);
      put(": ");
      write(dict.entries[i].second);
    }
    put("}");
  }

  Runtime& runtime_;
  Text out_;
};

}  // namespace

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t mark = text.find('e');
  const bool negative = text[0] == '-';
  std::string digits(text.substr(negative ? 1 : 0, 1));
  if (text[negative ? 2 : 1] == '.')
    digits += text.substr(negative ? 3 : 2, mark - (negative ? 3 : 2));
  int exponent = 0;
  const char* const exponent_start = text.data() + mark + (text[mark + 1] == '+' ? 2 : 1);
  std::from_chars(exponent_start, end, exponent);
  const std::string_view all(digits);
  const std::string_view sign = negative ? "-" : "";
  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}{}{}{}e{}{:02d}", sign, all.substr(0, 1), all.size() > 1 ? "." : "",
                       all.substr(1), exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return fmt::format("{}0.{}{}", sign, std::string(-exponent - 1, '0'), all);
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (all.size() <= whole)
    return fmt::format("{}{}{}.0", sign, all, std::string(whole - all.size(), '0'));
  return fmt::format("{}{}.{}", sign, all.substr(0, whole), all.substr(whole));
}

// Numbers count as scaffolding: templates build control tokens out of counters, and no message
// can spell one in digits.
Text to_text(Runtime& runtime, const Value& value) {
  switch (value.type()) {
    case Type::kUndefined: return Text();
    case Type::kNone: return Text("None", false);
    case Type::kBool: return Text(value.boolean() ? "True" : "False", false);
    case Type::kInt: return Text(fmt::format("{}", value.integer()), false);
    case Type::kBigInt: return Text(fmt::format("{}", value.big()), false);
    case Type::kFloat: return Text(float_repr(value.real()), false);
    case Type::kString: runtime.work(value.text().size() / 64); return value.text();
    case Type::kSequence:
    case Type::kDict: return repr(runtime, value);
    case Type::kObject: return Text(fmt::format("<{}>", value.object()->type_name()), true);
  }
  return Text();
}

Text repr(Runtime& runtime, const Value& value) {
  ReprWriter writer(runtime);
  writer.write(value);
  return writer.take();
}

Text escape_markup(Runtime& runtime, const Value& value) {
  const Text text = to_text(runtime, value);
  if (value.is_markup()) return text;
  Text out;
  text.for_each_span([&](std::string_view bytes, bool content) {
    std::string escaped;
    for (const char c : bytes) {
      switch (c) {
        case '&': escaped += "&amp;"; break;
        case '<': escaped += "&lt;"; break;
        case '>': escaped += "&gt;"; break;
        case '"': escaped += "&#34;"; break;
        case '\'': escaped += "&#39;"; break;
        default: escaped += c;
      }
    }
    runtime.append(out, escaped, content);
  });
  return out;
}

}  // namespace strata::jinja
