// Filters for numbers and for single values.
#include <charconv>
#include <cmath>

#include "text/template/error.h"
#include "text/template/filters.h"
#include "text/template/methods.h"
#include "text/template/methods_text.h"
#include "text/template/operators.h"

namespace strata::jinja {
namespace {

void require_defined(const Value& value) {
  if (value.is(Type::kUndefined)) fail("{}", value.why_undefined());
}

Value fallback(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "default", {"default_value", "boolean"});
  const bool by_truth = args[1] != nullptr && truth(*args[1]);
  if (!input.is(Type::kUndefined) && (!by_truth || truth(input))) return input;
  return args[0] != nullptr ? *args[0] : runtime.string(Text());
}

Value absolute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "abs", {});
  require_defined(input);
  if (!input.is_number()) fail("bad operand type for abs(): '{}'", type_name(input));
  if (input.is(Type::kBigInt)) return input;
  if (input.is(Type::kFloat)) return Value(std::abs(input.real()));
  return input.integer() < 0 ? unary(runtime, UnaryOp::kNegate, input) : Value(input.integer());
}

// Digits as int() and float() take them: trimmed, single underscores between digits dropped.
std::optional<std::string> plain_digits(Runtime& runtime, const Value& value) {
  const Text trimmed = strip(runtime, value.text(), std::nullopt, Side::kBoth);
  std::string out;
  for (std::size_t i = 0; i < trimmed.size(); ++i) {
    const char c = trimmed.view()[i];
    if (c != '_') {
      out += c;
    } else if (i == 0 || i + 1 == trimmed.size() || trimmed.view()[i - 1] == '_') {
      return std::nullopt;
    }
  }
  return out;
}

std::optional<double> parse_real(Runtime& runtime, const Value& value) {
  std::optional<std::string> digits = plain_digits(runtime, value);
  if (!digits || digits->empty()) return std::nullopt;
  const bool has_sign = digits->front() == '-' || digits->front() == '+';
  const bool negative = digits->front() == '-';
  const char* const first = digits->data() + (has_sign ? 1 : 0);
  const char* const last = digits->data() + digits->size();
  if (first == last || *first == '-' || *first == '+') return std::nullopt;
  double parsed = 0;
  const auto [end, error] = std::from_chars(first, last, parsed);
  if (end != last || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) fail("a number is too large for a float");
  return negative ? -parsed : parsed;
}

std::optional<std::int64_t> parse_integer(Runtime& runtime, const Value& value, std::int64_t base) {
  std::optional<std::string> digits = plain_digits(runtime, value);
  if (!digits || digits->empty()) return std::nullopt;
  const bool negative = digits->front() == '-';
  if (negative || digits->front() == '+') digits->erase(0, 1);
  const auto prefixed = [&](char letter) {
    return digits->size() > 2 && (*digits)[0] == '0' && ((*digits)[1] | 0x20) == letter;
  };
  if ((base == 16 && prefixed('x')) || (base == 8 && prefixed('o')) || (base == 2 && prefixed('b')))
    digits->erase(0, 2);
  std::int64_t parsed = 0;
  const char* const last = digits->data() + digits->size();
  if (digits->empty() || digits->front() == '-') return std::nullopt;
  const auto [end, error] = std::from_chars(digits->data(), last, parsed, static_cast<int>(base));
  if (error == std::errc::result_out_of_range)
    fail("an integer of the chat template does not fit into 64 bits");
  if (error != std::errc() || end != last) return std::nullopt;
  return negative ? -parsed : parsed;
}

std::optional<std::int64_t> truncated(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  if (std::abs(value) >= 9.2e18) fail("an integer of the chat template does not fit into 64 bits");
  return static_cast<std::int64_t>(value);
}

Value to_integer(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "int", {"default", "base"});
  require_defined(input);
  const std::int64_t base = args[1] != nullptr ? expect_integer(*args[1], "int") : 10;
  if (base < 2 || base > 36) fail("int() base must be >= 2 and <= 36");
  if (input.is(Type::kBigInt)) return input;
  std::optional<std::int64_t> parsed;
  if (input.is_integral()) parsed = input.integer();
  if (input.is(Type::kFloat)) parsed = truncated(input.real());
  if (input.is(Type::kString)) {
    parsed = parse_integer(runtime, input, base);
    if (!parsed) {
      if (const std::optional<double> real = parse_real(runtime, input)) parsed = truncated(*real);
    }
  }
  if (parsed) return Value(*parsed);
  return args[0] != nullptr ? *args[0] : Value(std::int64_t{0});
}

Value to_float(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "float", {"default"});
  require_defined(input);
  if (input.is_number()) return Value(input.real());
  if (input.is(Type::kString)) {
    if (const std::optional<double> real = parse_real(runtime, input)) return Value(*real);
  }
  return args[0] != nullptr ? *args[0] : Value(0.0);
}

Value rounded(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "round", {"precision", "method"});
  require_defined(input);
  if (!input.is_number()) fail("type {} cannot be rounded", type_name(input));
  const std::int64_t precision = args[0] != nullptr ? expect_integer(*args[0], "round") : 0;
  const std::string method =
      args[1] != nullptr ? to_text(runtime, *args[1]).bytes() : std::string("common");
  if (method != "common" && method != "ceil" && method != "floor")
    fail("method must be common, ceil or floor");
  if (precision < -300 || precision > 300) fail("round: a precision of {} is refused", precision);
  if (method == "common" && input.is_integral() && precision >= 0) return Value(input.integer());
  if (method == "common" && input.is(Type::kBigInt) && precision >= 0) return input;
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double value = input.real();
  if (!std::isfinite(value)) return input;
  if (method == "ceil") return Value(std::ceil(value * scale) / scale);
  if (method == "floor") return Value(std::floor(value * scale) / scale);
  if (precision < 0) {
    const double result = std::nearbyint(value * scale) / scale;
    return input.is_integral() ? Value(static_cast<std::int64_t>(result)) : Value(result);
  }
  const std::string digits = fmt::format("{:.{}f}", value, static_cast<int>(precision));
  double result = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), result);
  return Value(result);
}

Value attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "attr", {"name"});
  if (args[0] == nullptr) fail("attr needs a name");
  const std::string_view name = expect_string(*args[0], "attr").view();
  require_defined(input);
  if (input.is(Type::kDict) && find_method(input, name) == nullptr)
    return runtime.missing_attribute(input, name);
  return get_attribute(runtime, input, name);
}

Value count(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "length", {});
  return Value(length(runtime, input));
}

}  // namespace

FilterFunction find_value_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, FilterFunction> kFilters[] = {
      {"abs", absolute},   {"attr", attribute},   {"count", count},
      {"d", fallback},     {"default", fallback}, {"float", to_float},
      {"int", to_integer}, {"length", count},     {"round", rounded},
  };
  return find_named(kFilters, name);
}

}  // namespace strata::jinja
