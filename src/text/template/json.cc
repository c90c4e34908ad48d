#include "text/template/json.h"

#include <algorithm>
#include <cmath>

#include "text/template/error.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

Value unsigned_value(std::uint64_t value) {
  return value >> 63 == 0 ? Value(static_cast<std::int64_t>(value)) : Value(BigInt{value});
}

Value convert(Runtime& runtime, const boost::json::value& json, bool content, int depth) {
  if (depth > runtime.limits().value_depth)
    fail_limit("the inputs are nested more than {} deep", runtime.limits().value_depth);
  runtime.work(1);
  switch (json.kind()) {
    case boost::json::kind::null: return Value(None{});
    case boost::json::kind::bool_: return Value(json.get_bool());
    case boost::json::kind::int64: return Value(json.get_int64());
    case boost::json::kind::uint64: return unsigned_value(json.get_uint64());
    case boost::json::kind::double_: return Value(json.get_double());
    case boost::json::kind::string: {
      const boost::json::string& text = json.get_string();
      return runtime.string(std::string(text.data(), text.size()), content);
    }
    case boost::json::kind::array: {
      std::vector<Value> items;
      for (const auto& item : json.get_array())
        items.push_back(convert(runtime, item, content, depth + 1));
      return runtime.list(std::move(items));
    }
    case boost::json::kind::object: {
      std::vector<std::pair<Value, Value>> entries;
      for (const auto& entry : json.get_object()) {
        entries.emplace_back(runtime.string(std::string(entry.key()), content),
                             convert(runtime, entry.value(), content, depth + 1));
      }
      return runtime.dict(std::move(entries));
    }
  }
  return Value();
}

class JsonWriter {
 public:
  JsonWriter(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  void write(const Value& value) {
    runtime_.work(1);
    switch (value.type()) {
      case Type::kNone: return put("null");
      case Type::kBool: return put(value.boolean() ? "true" : "false");
      case Type::kInt: return put(fmt::format("{}", value.integer()));
      case Type::kBigInt: return put(fmt::format("{}", value.big()));
      case Type::kFloat: return put(number(value.real()));
      case Type::kString: return string(value.text());
      case Type::kDict: return dict(value.dict());
      case Type::kSequence:
        if (value.sequence().kind == SequenceKind::kList || value.sequence().is_tuple())
          return list(value.sequence().items);
        [[fallthrough]];
      default: fail("Object of type {} is not JSON serializable", type_name(value));
    }
  }
  Text take() { return std::move(out_); }

 private:
  // What JSON adds counts as content, like most of what it spells.
  void put(std::string_view text) { runtime_.append(out_, text, true); }

  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
    return float_repr(value);
  }

  void string(const Text& text) {
    put("\"");
    text.for_each_span([&](std::string_view bytes, bool content) {
      runtime_.append(out_, escape(bytes), content);
    });
    put("\"");
  }

  std::string escape(std::string_view bytes) const {
    std::string out;
    for (std::size_t at = 0; at < bytes.size();) {
      const CodePoint c = code_point_at(bytes, at);
      constexpr std::string_view kSpecial = "\"\\\n\r\t\b\f";
      constexpr std::string_view kLetters = "\"\\nrtbf";
      const std::size_t special =
          c.value < 0x80 ? kSpecial.find(static_cast<char>(c.value)) : std::string_view::npos;
      if (special != std::string_view::npos) {
        out += '\\';
        out += kLetters[special];
      } else if (c.value < 0x20 || (style_.ensure_ascii && c.value > 0x7E)) {
        append_escape(out, c.value);
      } else {
        out += bytes.substr(at, c.bytes);
      }
      at += c.bytes;
    }
    return out;
  }

  static void append_escape(std::string& out, char32_t c) {
    if (c < 0x10000) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      const unsigned offset = static_cast<unsigned>(c) - 0x10000;
      out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (offset >> 10), 0xDC00 + (offset & 0x3FF));
    }
  }

  // Between the items of a list or dict, and around them.
  void separate(bool first) {
    if (!first) runtime_.append(out_, style_.item_separator);
    new_line();
  }
  void new_line() {
    if (!style_.indent) return;
    put("\n");
    for (int i = 0; i < level_; ++i) runtime_.append(out_, *style_.indent);
  }

  void list(const std::vector<Value>& items) {
    if (items.empty()) return put("[]");
    put("[");
    ++level_;
    for (std::size_t i = 0; i < items.size(); ++i) {
      separate(i == 0);
      write(items[i]);
    }
    --level_;
    new_line();
    put("]");
  }

  void key(const Value& key) {
    if (key.is(Type::kString)) return string(key.text());
    if (!key.is_number() && !key.is(Type::kNone))
      fail("keys must be str, int, float, bool or None, not {}", type_name(key));
    put("\"");
    write(key);
    put("\"");
  }

  void dict(const Dict& dict) {
    if (dict.entries.empty()) return put("{}");
    std::vector<const std::pair<Value, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) {
      std::stable_sort(entries.begin(), entries.end(), [&](const auto* a, const auto* b) {
        return less(runtime_, a->first, b->first);
      });
    }
    put("{");
    ++level_;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      separate(i == 0);
      key(entries[i]->first);
      runtime_.append(out_, style_.key_separator);
      write(entries[i]->second);
    }
    --level_;
    new_line();
    put("}");
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  Text out_;
  int level_ = 0;
};

}  // namespace

Value from_json(Runtime& runtime, const boost::json::value& json, bool content) {
  return convert(runtime, json, content, 0);
}

Text to_json(Runtime& runtime, const Value& value, const JsonStyle& style) {
  JsonWriter writer(runtime, style);
  writer.write(value);
  return writer.take();
}

}  // namespace strata::jinja
