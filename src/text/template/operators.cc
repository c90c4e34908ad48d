#include "text/template/operators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "text/template/error.h"
#include "text/template/format.h"

namespace strata::jinja {
namespace {

constexpr std::array<std::string_view, 7> kOperatorNames = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void fail_operands(std::string_view op, const Value& left, const Value& right) {
  fail("unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(left), type_name(right));
}

std::int64_t checked(std::optional<std::int64_t> value) {
  if (!value) fail("an integer of the chat template does not fit into 64 bits");
  return *value;
}

std::int64_t checked_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t out;
  if (__builtin_sub_overflow(a, b, &out)) return checked(std::nullopt);
  return out;
}

void require_divisor(bool nonzero) {
  if (!nonzero) fail("division by zero");
}

// Rounds towards minus infinity.
std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  require_divisor(b != 0);
  if (b == -1) return checked_subtract(0, a);
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

// Has the sign of the divisor.
std::int64_t floor_modulo(std::int64_t a, std::int64_t b) {
  require_divisor(b != 0);
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double floor_modulo(double a, double b) {
  require_divisor(b != 0);
  const double rest = std::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Value power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    require_divisor(base != 0);
    return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  if (base == 0 || base == 1) return Value(exponent == 0 ? std::int64_t{1} : base);
  if (base == -1) return Value(std::int64_t{exponent % 2 == 0 ? 1 : -1});
  std::int64_t result = 1;
  for (; exponent > 0; --exponent) result = checked(checked_mul(result, base));
  return Value(result);
}

Value integer_arithmetic(BinaryOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case BinaryOp::kAdd: return Value(checked(checked_add(a, b)));
    case BinaryOp::kSubtract: return Value(checked_subtract(a, b));
    case BinaryOp::kMultiply: return Value(checked(checked_mul(a, b)));
    case BinaryOp::kDivide:
      require_divisor(b != 0);
      return Value(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDivide: return Value(floor_divide(a, b));
    case BinaryOp::kModulo: return Value(floor_modulo(a, b));
    case BinaryOp::kPower: return power(a, b);
  }
  return Value();
}

Value real_arithmetic(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd: return Value(a + b);
    case BinaryOp::kSubtract: return Value(a - b);
    case BinaryOp::kMultiply: return Value(a * b);
    case BinaryOp::kDivide: require_divisor(b != 0); return Value(a / b);
    case BinaryOp::kFloorDivide:
      require_divisor(b != 0);
      return Value(std::floor((a - floor_modulo(a, b)) / b + 0.5));
    case BinaryOp::kModulo: return Value(floor_modulo(a, b));
    case BinaryOp::kPower:
      if (a == 0 && b < 0) require_divisor(false);
      if (a < 0 && std::floor(b) != b) fail("a complex number is not supported");
      return Value(std::pow(a, b));
  }
  return Value();
}

Value add_strings(Runtime& runtime, const Value& left, const Value& right) {
  const bool markup = left.is_markup() || right.is_markup();
  Text out;
  runtime.append(out, markup ? escape_markup(runtime, left) : left.text());
  runtime.append(out, markup ? escape_markup(runtime, right) : right.text());
  return runtime.string(std::move(out), markup);
}

Value add_sequences(Runtime& runtime, const Value& left, const Value& right) {
  std::vector<Value> items = left.sequence().items;
  const auto& more = right.sequence().items;
  runtime.work(items.size() + more.size());
  items.insert(items.end(), more.begin(), more.end());
  return runtime.sequence(left.sequence().kind, std::move(items));
}

bool is_list_or_tuple(const Value& value) {
  return value.is(Type::kSequence) &&
         (value.sequence().kind == SequenceKind::kList || value.sequence().is_tuple());
}

bool both_tuples_or_lists(const Value& left, const Value& right) {
  return is_list_or_tuple(left) && is_list_or_tuple(right) &&
         left.sequence().is_tuple() == right.sequence().is_tuple();
}

Value repeat(Runtime& runtime, const Value& value, std::int64_t count) {
  const auto times = static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  if (value.is(Type::kString)) {
    Text out;
    if (value.text().empty()) return value;
    for (std::size_t i = 0; i < times; ++i) {
      runtime.work(1);
      runtime.append(out, value.text());
    }
    return runtime.string(std::move(out), value.is_markup());
  }
  const auto& items = value.sequence().items;
  const auto total = checked_mul(items.size(), times);
  if (!total || *total > runtime.limits().memory_bytes / sizeof(Value))
    fail_limit("a list of the chat template would be too long");
  runtime.work(*total);
  std::vector<Value> out;
  for (std::size_t i = 0; i < times && !items.empty(); ++i)
    out.insert(out.end(), items.begin(), items.end());
  return runtime.sequence(value.sequence().kind, std::move(out));
}

// What strings and lists do with the operators of arithmetic.
Value sequence_arithmetic(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  if (op == BinaryOp::kAdd) {
    if (left.is(Type::kString) && right.is(Type::kString)) return add_strings(runtime, left, right);
    if (both_tuples_or_lists(left, right)) return add_sequences(runtime, left, right);
    if (left.is(Type::kString) || is_list_or_tuple(left)) {
      const std::string name = left.is(Type::kString) ? "str" : type_name(left);
      fail("can only concatenate {} (not \"{}\") to {}", name, type_name(right), name);
    }
  }
  const auto repeats = [](const Value& value) {
    return value.is(Type::kString) || is_list_or_tuple(value);
  };
  if (op == BinaryOp::kMultiply) {
    if (repeats(left) && right.is_integral()) return repeat(runtime, left, right.integer());
    if (repeats(right) && left.is_integral()) return repeat(runtime, right, left.integer());
  }
  if (op == BinaryOp::kModulo && left.is(Type::kString))
    return percent_format(runtime, left, right);
  fail_operands(kOperatorNames[static_cast<std::size_t>(op)], left, right);
}

void require_defined(const Value& value) {
  if (value.is(Type::kUndefined)) fail("{}", value.why_undefined());
}

bool equal_sequences(Runtime& runtime, const Value& left, const Value& right) {
  const auto& a = left.sequence();
  const auto& b = right.sequence();
  if (!both_tuples_or_lists(left, right) && a.kind != b.kind) return false;
  if (a.items.size() != b.items.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(runtime, a.items[i], b.items[i])) return false;
  }
  return true;
}

bool equal_dicts(Runtime& runtime, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  for (const auto& [key, value] : a.entries) {
    const Value* other = b.find(key);
    if (other == nullptr || !equal(runtime, value, *other)) return false;
  }
  return true;
}

bool less_sequences(Runtime& runtime, const Value& left, const Value& right) {
  const auto& a = left.sequence().items;
  const auto& b = right.sequence().items;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (!equal(runtime, a[i], b[i])) return less(runtime, a[i], b[i]);
  }
  return a.size() < b.size();
}

bool ordered(Runtime& runtime, std::string_view op, const Value& left, const Value& right) {
  runtime.work(1);
  if (left.is(Type::kInt) && right.is(Type::kInt)) return left.integer() < right.integer();
  if (left.is(Type::kBigInt) && right.is(Type::kBigInt)) return left.big() < right.big();
  if (left.is(Type::kBigInt) && right.is_integral()) return false;
  if (left.is_integral() && right.is(Type::kBigInt)) return true;
  if (left.is_number() && right.is_number()) return left.real() < right.real();
  if (left.is(Type::kString) && right.is(Type::kString)) {
    runtime.work(std::min(left.text().size(), right.text().size()) / 64);
    return left.bytes() < right.bytes();
  }
  if (both_tuples_or_lists(left, right)) return less_sequences(runtime, left, right);
  require_defined(left);
  require_defined(right);
  fail("'{}' not supported between instances of '{}' and '{}'", op, type_name(left),
       type_name(right));
}

}  // namespace

bool truth(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined:
    case Type::kNone: return false;
    case Type::kBool: return value.boolean();
    case Type::kInt: return value.integer() != 0;
    case Type::kBigInt: return true;
    case Type::kFloat: return value.real() != 0;
    case Type::kString: return !value.text().empty();
    case Type::kSequence: return !value.sequence().items.empty();
    case Type::kDict: return !value.dict().entries.empty();
    case Type::kObject: return true;
  }
  return false;
}

bool equal(Runtime& runtime, const Value& left, const Value& right) {
  runtime.work(1);
  if (left.is_integral() && right.is_integral()) return left.integer() == right.integer();
  if (left.is(Type::kBigInt) && right.is(Type::kBigInt)) return left.big() == right.big();
  if (left.is(Type::kBigInt) && right.is_integral()) return false;
  if (left.is_integral() && right.is(Type::kBigInt)) return false;
  if (left.is_number() && right.is_number()) return left.real() == right.real();
  if (left.type() != right.type()) return false;
  switch (left.type()) {
    case Type::kUndefined:
    case Type::kNone: return true;
    case Type::kString:
      runtime.work(std::min(left.text().size(), right.text().size()) / 64);
      return left.bytes() == right.bytes();
    case Type::kSequence: return equal_sequences(runtime, left, right);
    case Type::kDict: return equal_dicts(runtime, left.dict(), right.dict());
    case Type::kObject: return left.object() == right.object();
    default: return false;
  }
}

bool less(Runtime& runtime, const Value& left, const Value& right) {
  return ordered(runtime, "<", left, right);
}

bool contains(Runtime& runtime, const Value& container, const Value& item) {
  if (container.is(Type::kString)) {
    if (item.is(Type::kUndefined)) fail("{}", item.why_undefined());
    if (!item.is(Type::kString))
      fail("'in <string>' requires string as left operand, not {}", type_name(item));
    runtime.work_on(container.bytes());
    return item.text().empty() || memmem(container.bytes().data(), container.text().size(),
                                         item.bytes().data(), item.text().size()) != nullptr;
  }
  if (container.is(Type::kDict)) {
    if (!hash_key(item)) fail("unhashable type: '{}'", type_name(item));
    return container.dict().find(item) != nullptr;
  }
  if (!container.is(Type::kSequence) && !container.is(Type::kUndefined) &&
      !container.is(Type::kObject))
    fail("argument of type '{}' is not iterable", type_name(container));
  if (container.is(Type::kSequence)) {
    const auto& items = container.sequence().items;
    return std::any_of(items.begin(), items.end(),
                       [&](const Value& known) { return equal(runtime, known, item); });
  }
  const std::vector<Value> items = iterate(runtime, container);
  return std::any_of(items.begin(), items.end(),
                     [&](const Value& known) { return equal(runtime, known, item); });
}

bool compare(Runtime& runtime, CompareOp op, const Value& left, const Value& right) {
  switch (op) {
    case CompareOp::kEqual: return equal(runtime, left, right);
    case CompareOp::kNotEqual: return !equal(runtime, left, right);
    case CompareOp::kLess: return ordered(runtime, "<", left, right);
    case CompareOp::kGreater: return ordered(runtime, ">", right, left);
    case CompareOp::kLessEqual:
      return ordered(runtime, "<=", left, right) || equal(runtime, left, right);
    case CompareOp::kGreaterEqual:
      return ordered(runtime, ">=", right, left) || equal(runtime, left, right);
    case CompareOp::kIn: return contains(runtime, right, left);
    case CompareOp::kNotIn: return !contains(runtime, right, left);
  }
  return false;
}

Value arithmetic(Runtime& runtime, BinaryOp op, const Value& left, const Value& right) {
  require_defined(left);
  if (left.is_integral() && right.is_integral())
    return integer_arithmetic(op, left.integer(), right.integer());
  if (op == BinaryOp::kModulo && left.is(Type::kBigInt) && right.is_integral() &&
      right.integer() > 0) {
    const auto divisor = static_cast<std::uint64_t>(right.integer());
    return Value(static_cast<std::int64_t>(left.big() % divisor));
  }
  if (left.is_number() && right.is_number()) return real_arithmetic(op, left.real(), right.real());
  if (op != BinaryOp::kModulo || !left.is(Type::kString)) require_defined(right);
  return sequence_arithmetic(runtime, op, left, right);
}

Value unary(Runtime&, UnaryOp op, const Value& operand) {
  if (op == UnaryOp::kNot) return Value(!truth(operand));
  require_defined(operand);
  if (!operand.is_number())
    fail("bad operand type for unary {}: '{}'", op == UnaryOp::kNegate ? '-' : '+',
         type_name(operand));
  if (operand.is(Type::kBigInt) && op != UnaryOp::kNegate) return operand;
  if (!operand.is_integral())
    return Value(op == UnaryOp::kNegate ? -operand.real() : operand.real());
  const std::int64_t value = operand.integer();
  return Value(op == UnaryOp::kNegate ? checked_subtract(0, value) : value);
}

Value concat(Runtime& runtime, const std::vector<Value>& items) {
  Text out;
  for (const Value& item : items) {
    if (item.is(Type::kString)) {
      runtime.append(out, item.text());
    } else {
      runtime.append(out, to_text(runtime, item));
    }
  }
  return runtime.string(std::move(out));
}

std::int64_t expect_integer(const Value& value, std::string_view function) {
  if (!value.is_integral()) fail("{}() needs an integer, not '{}'", function, type_name(value));
  return value.integer();
}

const Text& expect_string(const Value& value, std::string_view function) {
  require_defined(value);
  if (!value.is(Type::kString)) fail("{}() needs a str, not '{}'", function, type_name(value));
  return value.text();
}

}  // namespace strata::jinja
