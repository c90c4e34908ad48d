#include "text/template/format.h"

#include <charconv>
#include <cmath>

#include "text/template/error.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

constexpr int kMostDigits = 200;  // after the point
constexpr int kWidest = 1'000'000;

// The common part of a %-conversion and a format() field.
struct FieldSpec {
  bool zero = false;
  char align = 0;  // one of < > ^, 0: as the type asks
  char sign = '-';
  char fill = ' ';
  bool grouped = false;  // thousands with commas
  int width = 0;
  int precision = -1;
  char type = 0;
};

int read_number(std::string_view text, std::size_t& at, int limit) {
  int value = 0;
  for (; at < text.size() && is_digit(static_cast<unsigned char>(text[at])); ++at) {
    value = value * 10 + (text[at] - '0');
    if (value > limit) fail_limit("a format asks for more than {} characters", limit);
  }
  return value;
}

void pad(Runtime& runtime, Text& out, const Text& body, const FieldSpec& spec, char natural) {
  const int size = static_cast<int>(std::min<std::size_t>(count_code_points(body.view()), kWidest));
  const int missing = std::max(0, spec.width - size);
  const char align = spec.align != 0 ? spec.align : natural;
  const int before = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  runtime.append(out, std::string(before, spec.fill), body.content_at(0));
  runtime.append(out, body);
  runtime.append(out, std::string(missing - before, spec.fill), body.content_at(body.size()));
}

std::string group_thousands(std::string_view digits) {
  const std::size_t whole = std::min(digits.find_first_not_of("0123456789"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i != 0 && (whole - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  out += digits.substr(whole);
  return out;
}

std::string real_digits(double value, const FieldSpec& spec) {
  const int precision = spec.precision < 0 ? 6 : spec.precision;
  if (precision > kMostDigits) fail_limit("a format asks for more than {} digits", kMostDigits);
  switch (spec.type) {
    case 'e': return fmt::format("{:.{}e}", value, precision);
    case 'g': return fmt::format("{:.{}g}", value, precision == 0 ? 1 : precision);
    default: return fmt::format("{:.{}f}", value, precision);
  }
}

std::string integer_digits(std::uint64_t value, char type) {
  switch (type) {
    case 'x': return fmt::format("{:x}", value);
    case 'X': return fmt::format("{:X}", value);
    case 'o': return fmt::format("{:o}", value);
    case 'b': return fmt::format("{:b}", value);
    default: return fmt::format("{}", value);
  }
}

void format_number(Runtime& runtime, Text& out, const Value& value, FieldSpec spec) {
  if (!value.is_number())
    fail("format code '{}' needs a number, not '{}'", spec.type, type_name(value));
  const bool as_real = std::string_view("feg%").find(spec.type) != std::string_view::npos;
  if (!as_real && value.is(Type::kFloat) && !std::isfinite(value.real()))
    fail("cannot convert {} to an integer", float_repr(value.real()));
  const bool negative = value.is(Type::kFloat) ? std::signbit(value.real())
                                               : value.is_integral() && value.integer() < 0;
  std::string digits;
  if (as_real) {
    const double scaled = spec.type == '%' ? value.real() * 100 : value.real();
    digits = real_digits(std::abs(scaled), spec) + (spec.type == '%' ? "%" : "");
  } else if (value.is(Type::kFloat)) {
    if (std::abs(value.real()) >= 9.2e18) fail("a number is too large for an integer format");
    digits = integer_digits(static_cast<std::uint64_t>(std::abs(value.real())), spec.type);
  } else if (value.is(Type::kBigInt)) {
    digits = integer_digits(value.big(), spec.type);
  } else {
    const auto bits = static_cast<std::uint64_t>(value.integer());
    digits = integer_digits(negative ? 0 - bits : bits, spec.type);
  }
  if (spec.grouped) digits = group_thousands(digits);
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const int used = static_cast<int>(sign.size() + digits.size());
  const int zeros = spec.zero && spec.align == 0 ? std::max(0, spec.width - used) : 0;
  const std::string body = fmt::format("{}{}{}", sign, std::string(zeros, '0'), digits);
  pad(runtime, out, Text(body, false), spec, '>');
}

void format_text(Runtime& runtime, Text& out, Text text, const FieldSpec& spec) {
  if (spec.precision >= 0) {
    runtime.work_on(text.view());
    text = text.substr(0, offset_of(text.view(), static_cast<std::size_t>(spec.precision)));
  }
  pad(runtime, out, text, spec, '<');
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& values)
      : runtime_(runtime), format_(format.text()), values_(values), markup_(format.is_markup()) {}

  Value run() {
    const std::string_view text = format_.view();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t percent = std::min(text.find('%', at), text.size());
      runtime_.append(out_, format_, at, percent - at);
      at = percent;
      if (at < text.size()) field(++at);
    }
    const bool leftover = values_.is(Type::kSequence) && values_.sequence().is_tuple()
                              ? used_ < values_.sequence().items.size()
                              : used_ == 0 && !values_.is(Type::kDict);
    if (leftover) fail("not all arguments converted during string formatting");
    return runtime_.string(std::move(out_), markup_);
  }

 private:
  void field(std::size_t& at) {
    const std::string_view text = format_.view();
    std::optional<Value> named;
    if (at < text.size() && text[at] == '(') {
      const std::size_t end = text.find(')', at);
      if (end == std::string_view::npos) fail("incomplete format key");
      if (!values_.is(Type::kDict)) fail("format requires a mapping");
      const std::string_view key = text.substr(at + 1, end - at - 1);
      const Value* found = values_.dict().find(key);
      if (found == nullptr) fail("'{}'", key);
      named = *found;
      at = end + 1;
    }
    FieldSpec spec;
    for (; at < text.size() && std::string_view("-+ 0#").find(text[at]) != std::string_view::npos;
         ++at) {
      if (text[at] == '-') spec.align = '<';
      if (text[at] == '+' || text[at] == ' ') spec.sign = text[at];
      if (text[at] == '0') spec.zero = true;
    }
    spec.width = read_number(text, at, kWidest);
    if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at, kWidest);
    if (at >= text.size()) fail("incomplete format");
    spec.type = text[at++];
    if (spec.type == '%') return runtime_.append(out_, "%", format_.content_at(at - 1));
    convert(spec, named ? *named : next_value());
  }

  void convert(FieldSpec spec, const Value& value) {
    switch (spec.type) {
      case 's':
        return format_text(runtime_, out_,
                           markup_ ? escape_markup(runtime_, value) : to_text(runtime_, value),
                           spec);
      case 'r': return format_text(runtime_, out_, repr(runtime_, value), spec);
      case 'i':
      case 'u':
      case 'd':
      case 'x':
      case 'X':
      case 'o':
      case 'e':
      case 'f':
      case 'g':
        if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
        return format_number(runtime_, out_, value, spec);
      default: fail("unsupported format character '{}'", spec.type);
    }
  }

  Value next_value() {
    if (!values_.is(Type::kSequence) || !values_.sequence().is_tuple()) {
      if (used_++ > 0) fail("not enough arguments for format string");
      return values_;
    }
    const auto& items = values_.sequence().items;
    if (used_ >= items.size()) fail("not enough arguments for format string");
    return items[used_++];
  }

  Runtime& runtime_;
  const Text& format_;
  const Value& values_;
  bool markup_;
  std::size_t used_ = 0;
  Text out_;
};

class BraceFormatter {
 public:
  BraceFormatter(Runtime& runtime, const Value& format, const Arguments& arguments)
      : runtime_(runtime), format_(format.text()), arguments_(arguments) {}

  Value run() {
    const std::string_view text = format_.view();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t brace = std::min(text.find_first_of("{}", at), text.size());
      runtime_.append(out_, format_, at, brace - at);
      if (brace == text.size()) break;
      if (brace + 1 < text.size() && text[brace + 1] == text[brace]) {
        runtime_.append(out_, format_, brace, 1);
        at = brace + 2;
        continue;
      }
      const std::size_t end = text.find('}', brace);
      if (text[brace] == '}' || end == std::string_view::npos)
        fail("single '{}' encountered in format string", text[brace]);
      field(text.substr(brace + 1, end - brace - 1));
      at = end + 1;
    }
    return runtime_.string(std::move(out_));
  }

 private:
  void field(std::string_view field) {
    const std::size_t colon = std::min(field.find(':'), field.size());
    std::string_view name = field.substr(0, colon);
    bool as_repr = false;
    if (const std::size_t bang = name.find('!'); bang != std::string_view::npos) {
      const std::string_view conversion = name.substr(bang + 1);
      if (conversion != "r" && conversion != "s") fail("unsupported conversion '{}'", conversion);
      as_repr = conversion == "r";
      name = name.substr(0, bang);
    }
    const Value value = lookup(name);
    const FieldSpec spec = parse_spec(colon < field.size() ? field.substr(colon + 1) : "");
    const bool number = value.is_number() && !value.is(Type::kBool) && !as_repr;
    if (number && (spec.type != 0 || spec.precision >= 0 || spec.grouped || spec.sign != '-'))
      return format_number(runtime_, out_, value, spec.type != 0 ? spec : with_type(spec, value));
    if (spec.type != 0 && spec.type != 's') return format_number(runtime_, out_, value, spec);
    const Text text = as_repr ? repr(runtime_, value) : to_text(runtime_, value);
    if (!number) return format_text(runtime_, out_, text, spec);
    FieldSpec padded = spec;
    if (spec.zero) padded.fill = '0';
    pad(runtime_, out_, text, padded, '>');
  }

  static FieldSpec with_type(FieldSpec spec, const Value& value) {
    spec.type = value.is(Type::kFloat) ? 'g' : 'd';
    return spec;
  }

  static FieldSpec parse_spec(std::string_view text) {
    FieldSpec spec;
    std::size_t at = 0;
    const auto is_align = [&](std::size_t i) {
      return i < text.size() && std::string_view("<>^").find(text[i]) != std::string_view::npos;
    };
    if (is_align(1)) spec.fill = text[at++];
    if (is_align(at)) spec.align = text[at++];
    if (at < text.size() && (text[at] == '+' || text[at] == ' ' || text[at] == '-'))
      spec.sign = text[at++];
    if (at < text.size() && text[at] == '0') spec.zero = true;
    spec.width = read_number(text, at, kWidest);
    if (at < text.size() && text[at] == ',') spec.grouped = ++at != 0;
    if (at < text.size() && text[at] == '.') spec.precision = read_number(text, ++at, kWidest);
    if (at < text.size()) spec.type = text[at++];
    if (at < text.size() ||
        (spec.type != 0 && std::string_view("sdxXobfeg%").find(spec.type) == std::string::npos))
      fail("unsupported format specifier '{}'", text);
    return spec;
  }

  // A field's value: an argument, then .attribute and [key] of it.
  Value lookup(std::string_view name) {
    const std::size_t end = std::min(name.find_first_of(".["), name.size());
    Value found = argument(name.substr(0, end));
    for (name.remove_prefix(end); !name.empty();) {
      const bool dotted = name[0] == '.';
      std::size_t stop =
          std::min(dotted ? name.find_first_of(".[", 1) : name.find(']'), name.size());
      const std::string_view key = name.substr(1, stop - 1);
      if (key.empty()) fail("empty attribute in format string");
      if (dotted) {
        found = get_attribute(runtime_, found, key);
      } else {
        const std::optional<std::size_t> index = number(key);
        found = get_item(runtime_, found,
                         index ? Value(static_cast<std::int64_t>(*index))
                               : runtime_.string(std::string(key), false));
        stop = std::min(stop + 1, name.size());
      }
      name.remove_prefix(stop);
    }
    return found;
  }

  static std::optional<std::size_t> number(std::string_view text) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    return whole ? std::optional(value) : std::nullopt;
  }

  Value argument(std::string_view name) {
    const std::optional<std::size_t> index = name.empty() ? next_++ : number(name);
    if (index) {
      if (*index >= arguments_.positional.size())
        fail("Replacement index {} out of range for positional args tuple", *index);
      return arguments_.positional[*index];
    }
    for (const auto& [known, value] : arguments_.named) {
      if (known == name) return value;
    }
    fail("'{}'", name);
  }

  Runtime& runtime_;
  const Text& format_;
  const Arguments& arguments_;
  std::size_t next_ = 0;
  Text out_;
};

}  // namespace

Value percent_format(Runtime& runtime, const Value& format, const Value& values) {
  return PercentFormatter(runtime, format, values).run();
}

Value brace_format(Runtime& runtime, const Value& format, const Arguments& arguments) {
  return BraceFormatter(runtime, format, arguments).run();
}

}  // namespace strata::jinja
