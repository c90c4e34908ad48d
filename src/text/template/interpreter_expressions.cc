#include "text/template/error.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"

namespace strata::jinja {

Value Interpreter::lookup(std::string_view name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    for (const auto& [known, value] : scope->names) {
      if (known == name) return value;
    }
  }
  return runtime_.undefined(fmt::format("'{}' is undefined", name));
}

Value Interpreter::evaluate(const Expr& expr) {
  const Runtime::Depth depth(runtime_);
  runtime_.work(1);
  return std::visit([this](const auto& node) { return eval(node); }, expr.node);
}

Value Interpreter::eval(const SequenceLiteral& literal) {
  std::vector<Value> items;
  items.reserve(literal.items.size());
  for (const ExprPtr& item : literal.items) items.push_back(evaluate(*item));
  return literal.tuple ? runtime_.tuple(std::move(items)) : runtime_.list(std::move(items));
}

Value Interpreter::eval(const DictLiteral& literal) {
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : literal.entries) {
    Value name = evaluate(*key);
    entries.emplace_back(std::move(name), evaluate(*value));
  }
  return runtime_.dict(std::move(entries));
}

Value Interpreter::eval(const Unary& node) {
  return unary(runtime_, node.op, evaluate(*node.operand));
}

Value Interpreter::eval(const Binary& node) {
  const Value left = evaluate(*node.left);
  return arithmetic(runtime_, node.op, left, evaluate(*node.right));
}

Value Interpreter::eval(const Concat& node) {
  std::vector<Value> items;
  for (const ExprPtr& item : node.items) items.push_back(evaluate(*item));
  return concat(runtime_, items);
}

Value Interpreter::eval(const Logical& node) {
  Value left = evaluate(*node.left);
  return truth(left) == node.is_and ? evaluate(*node.right) : std::move(left);
}

Value Interpreter::eval(const Comparison& node) {
  Value left = evaluate(*node.first);
  for (const auto& [op, operand] : node.rest) {
    Value right = evaluate(*operand);
    if (!compare(runtime_, op, left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Value Interpreter::eval(const Conditional& node) {
  if (truth(evaluate(*node.condition))) return evaluate(*node.then);
  if (node.otherwise != nullptr) return evaluate(*node.otherwise);
  return runtime_.undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::eval(const Attribute& node) {
  return get_attribute(runtime_, evaluate(*node.object), node.name);
}

Value Interpreter::eval(const Subscript& node) {
  const Value object = evaluate(*node.object);
  return get_item(runtime_, object, evaluate(*node.key));
}

Value Interpreter::eval(const Slice& node) {
  const Value object = evaluate(*node.object);
  Value bounds[3];
  const Value* given[3] = {nullptr, nullptr, nullptr};
  const ExprPtr* sources[3] = {&node.start, &node.stop, &node.step};
  for (int i = 0; i < 3; ++i) {
    if (*sources[i] == nullptr) continue;
    bounds[i] = evaluate(**sources[i]);
    given[i] = &bounds[i];
  }
  return get_slice(runtime_, object, given[0], given[1], given[2]);
}

Value Interpreter::eval(const Call& node) {
  if (const auto* attribute = std::get_if<Attribute>(&node.callee->node); attribute != nullptr) {
    const Value self = evaluate(*attribute->object);
    if (const Method method = find_method(self, attribute->name); method != nullptr)
      return method(runtime_, self, evaluate(node.arguments));
    const Value callee = get_attribute(runtime_, self, attribute->name);
    return call(runtime_, callee, evaluate(node.arguments));
  }
  const Value callee = evaluate(*node.callee);
  return call(runtime_, callee, evaluate(node.arguments));
}

Value Interpreter::eval(const FilterCall& node) {
  const Value input = evaluate(*node.operand);
  if (node.function == nullptr) fail("No filter named '{}'.", node.name);
  return node.function(runtime_, input, evaluate(node.arguments));
}

Value Interpreter::eval(const TestCall& node) {
  const Value input = evaluate(*node.operand);
  if (node.function == nullptr) fail("No test named '{}'.", node.name);
  return Value(node.function(runtime_, input, evaluate(node.arguments)) != node.negated);
}

Arguments Interpreter::evaluate(const CallArguments& arguments) {
  Arguments out;
  for (const ExprPtr& value : arguments.positional) out.positional.push_back(evaluate(*value));
  if (arguments.spread_list != nullptr) {
    for (Value& value : iterate(runtime_, evaluate(*arguments.spread_list)))
      out.positional.push_back(std::move(value));
  }
  for (const auto& [name, value] : arguments.named) out.named.emplace_back(name, evaluate(*value));
  if (arguments.spread_dict != nullptr) {
    const Value spread = evaluate(*arguments.spread_dict);
    if (!spread.is(Type::kDict)) fail("argument after ** must be a mapping");
    for (const auto& [name, value] : spread.dict().entries)
      out.named.emplace_back(expect_string(name, "call").bytes(), value);
  }
  return out;
}

}  // namespace strata::jinja
