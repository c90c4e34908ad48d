// The tests of `x is test`.
#include "text/template/error.h"
#include "text/template/methods.h"
#include "text/template/operators.h"

namespace strata::jinja {
namespace {

const Value& operand(const Arguments& arguments, std::string_view test) {
  const auto args = bind(arguments, test, {"other"});
  if (args[0] == nullptr) fail("the test '{}' needs a value to compare with", test);
  return *args[0];
}

template <Type kType>
bool is_type(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "test", {});
  return input.is(kType);
}

template <CompareOp kOp>
bool compares(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return compare(runtime, kOp, input, operand(arguments, "compare"));
}

bool defined(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "defined", {});
  return !input.is(Type::kUndefined);
}

template <bool kWanted>
bool is_boolean(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "test", {});
  return input.is(Type::kBool) && input.boolean() == kWanted;
}

bool number(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "number", {});
  return input.is_number();
}

bool integer(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "integer", {});
  return input.is(Type::kInt) || input.is(Type::kBigInt);
}

bool iterable(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "iterable", {});
  return input.is(Type::kString) || input.is(Type::kSequence) || input.is(Type::kDict) ||
         input.is(Type::kUndefined) ||
         (input.is(Type::kObject) && input.object()->type_name() == "generator");
}

bool sequence(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "sequence", {});
  return input.is(Type::kString) || input.is(Type::kDict) || input.is(Type::kUndefined) ||
         (input.is(Type::kSequence) && !input.sequence().is_view());
}

bool callable(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "callable", {});
  return input.is(Type::kUndefined) || (input.is(Type::kObject) && input.object()->callable());
}

bool same_as(Runtime&, const Value& input, const Arguments& arguments) {
  return input.same_as(operand(arguments, "sameas"));
}

bool escaped(Runtime&, const Value& input, const Arguments& arguments) {
  bind(arguments, "escaped", {});
  return input.is_markup();
}

bool remainder_is(Runtime& runtime, const Value& input, const Value& divisor, std::int64_t wanted) {
  return equal(runtime, arithmetic(runtime, BinaryOp::kModulo, input, divisor), Value(wanted));
}

template <std::int64_t kRemainder>
bool parity(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "test", {});
  return remainder_is(runtime, input, Value(std::int64_t{2}), kRemainder);
}

bool divisible_by(Runtime& runtime, const Value& input, const Arguments& arguments) {
  return remainder_is(runtime, input, operand(arguments, "divisibleby"), 0);
}

template <bool kUpper>
bool in_case(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "test", {});
  return has_case(runtime, to_text(runtime, input), kUpper);
}

bool filter_exists(Runtime&, const Value& input, const Arguments&) {
  return find_filter(expect_string(input, "filter").view()) != nullptr;
}

bool test_exists(Runtime&, const Value& input, const Arguments&) {
  return find_test(expect_string(input, "test").view()) != nullptr;
}

}  // namespace

TestFunction find_test(std::string_view name) {
  static constexpr std::pair<std::string_view, TestFunction> kTests[] = {
      {"!=", compares<CompareOp::kNotEqual>},
      {"<", compares<CompareOp::kLess>},
      {"<=", compares<CompareOp::kLessEqual>},
      {"==", compares<CompareOp::kEqual>},
      {">", compares<CompareOp::kGreater>},
      {">=", compares<CompareOp::kGreaterEqual>},
      {"boolean", is_type<Type::kBool>},
      {"callable", callable},
      {"defined", defined},
      {"divisibleby", divisible_by},
      {"eq", compares<CompareOp::kEqual>},
      {"equalto", compares<CompareOp::kEqual>},
      {"escaped", escaped},
      {"even", parity<0>},
      {"false", is_boolean<false>},
      {"filter", filter_exists},
      {"float", is_type<Type::kFloat>},
      {"ge", compares<CompareOp::kGreaterEqual>},
      {"greaterthan", compares<CompareOp::kGreater>},
      {"gt", compares<CompareOp::kGreater>},
      {"in", compares<CompareOp::kIn>},
      {"integer", integer},
      {"iterable", iterable},
      {"le", compares<CompareOp::kLessEqual>},
      {"lessthan", compares<CompareOp::kLess>},
      {"lower", in_case<false>},
      {"lt", compares<CompareOp::kLess>},
      {"mapping", is_type<Type::kDict>},
      {"ne", compares<CompareOp::kNotEqual>},
      {"none", is_type<Type::kNone>},
      {"number", number},
      {"odd", parity<1>},
      {"sameas", same_as},
      {"sequence", sequence},
      {"string", is_type<Type::kString>},
      {"test", test_exists},
      {"true", is_boolean<true>},
      {"undefined", is_type<Type::kUndefined>},
      {"upper", in_case<true>},
  };
  return find_named(kTests, name);
}

}  // namespace strata::jinja
