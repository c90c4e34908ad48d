#include <array>

#include "text/template/parser_impl.h"

namespace strata::jinja {

void ExpressionParser::fail_here(std::string message) const {
  throw TemplateError{.message = std::move(message), .line = peek().line};
}

bool ExpressionParser::skip_operator(std::string_view op) {
  if (!at_operator(op)) return false;
  next();
  return true;
}

bool ExpressionParser::skip_name(std::string_view name) {
  if (!at_name(name)) return false;
  next();
  return true;
}

void ExpressionParser::expect_operator(std::string_view op) {
  if (!skip_operator(op)) fail_here(fmt::format("expected '{}', not '{}'", op, peek().text));
}

std::string ExpressionParser::expect_name() {
  if (peek().kind != TokenKind::kName) fail_here("expected a name");
  return next().text;
}

void ExpressionParser::expect(TokenKind kind, std::string_view what) {
  if (peek().kind != kind) fail_here(fmt::format("expected {}, not '{}'", what, peek().text));
  next();
}

int ExpressionParser::depth_of(std::initializer_list<const ExprPtr*> exprs) {
  int depth = 0;
  for (const ExprPtr* expr : exprs) depth = std::max(depth, depth_of(*expr));
  return depth;
}

int ExpressionParser::depth_of(const std::vector<ExprPtr>& exprs) {
  int depth = 0;
  for (const ExprPtr& expr : exprs) depth = std::max(depth, depth_of(expr));
  return depth;
}

int ExpressionParser::depth_of(const CallArguments& arguments) {
  int depth = std::max(depth_of(arguments.positional),
                       depth_of({&arguments.spread_list, &arguments.spread_dict}));
  for (const auto& [name, value] : arguments.named) depth = std::max(depth, depth_of(value));
  return depth;
}

ExprPtr ExpressionParser::expression(bool with_conditional) {
  unknown_.clear();
  ExprPtr made = parse(with_conditional);
  if (!unknown_.empty() && !guarded_) fail_here(unknown_.front());
  return made;
}

ExprPtr ExpressionParser::tuple(bool with_conditional, std::string_view end_name) {
  unknown_.clear();
  ExprPtr made = tuple_items(with_conditional, end_name, false);
  if (!unknown_.empty() && !guarded_) fail_here(unknown_.front());
  return made;
}

void ExpressionParser::note_unknown(std::string_view kind, std::string_view name) {
  unknown_.push_back(fmt::format("No {} named '{}'.", kind, name));
}

ExprPtr ExpressionParser::parse(bool with_conditional) {
  const Nesting nesting(*this);
  return with_conditional ? conditional() : logical_or();
}

ExprPtr ExpressionParser::conditional() {
  const std::size_t known_unknown = unknown_.size();
  ExprPtr made = logical_or();
  while (skip_name("if")) {
    ExprPtr condition = logical_or();
    ExprPtr otherwise = skip_name("else") ? parse(true) : nullptr;
    unknown_.resize(known_unknown);
    const int depth = depth_of({&made, &condition, &otherwise});
    made = make(Conditional{std::move(condition), std::move(made), std::move(otherwise)}, depth);
  }
  return made;
}

ExprPtr ExpressionParser::logical_or() {
  ExprPtr left = logical_and();
  while (skip_name("or")) {
    ExprPtr right = logical_and();
    const int depth = depth_of({&left, &right});
    left = make(Logical{false, std::move(left), std::move(right)}, depth);
  }
  return left;
}

ExprPtr ExpressionParser::logical_and() {
  ExprPtr left = logical_not();
  while (skip_name("and")) {
    ExprPtr right = logical_not();
    const int depth = depth_of({&left, &right});
    left = make(Logical{true, std::move(left), std::move(right)}, depth);
  }
  return left;
}

ExprPtr ExpressionParser::logical_not() {
  if (!skip_name("not")) return comparison();
  const Nesting nesting(*this);
  ExprPtr operand = logical_not();
  const int depth = operand->depth;
  return make(Unary{UnaryOp::kNot, std::move(operand)}, depth);
}

ExprPtr ExpressionParser::comparison() {
  constexpr std::array<std::pair<std::string_view, CompareOp>, 6> kOperators = {
      {{"==", CompareOp::kEqual},
       {"!=", CompareOp::kNotEqual},
       {"<", CompareOp::kLess},
       {"<=", CompareOp::kLessEqual},
       {">", CompareOp::kGreater},
       {">=", CompareOp::kGreaterEqual}}};
  Comparison made{sum(), {}};
  int depth = depth_of(made.first);
  const auto take = [&](CompareOp op) {
    made.rest.emplace_back(op, sum());
    depth = std::max(depth, depth_of(made.rest.back().second));
  };
  while (true) {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](const auto& known) { return at_operator(known.first); });
    if (found != kOperators.end()) {
      next();
      take(found->second);
    } else if (skip_name("in")) {
      take(CompareOp::kIn);
    } else if (at_name("not") && tokens_[at_ + 1].is(TokenKind::kName, "in")) {
      next();
      next();
      take(CompareOp::kNotIn);
    } else {
      break;
    }
  }
  return made.rest.empty() ? std::move(made.first) : make(std::move(made), depth);
}

ExprPtr ExpressionParser::sum() {
  ExprPtr left = concat();
  while (at_operator("+") || at_operator("-")) {
    const BinaryOp op = next().text == "+" ? BinaryOp::kAdd : BinaryOp::kSubtract;
    ExprPtr right = concat();
    const int depth = depth_of({&left, &right});
    left = make(Binary{op, std::move(left), std::move(right)}, depth);
  }
  return left;
}

ExprPtr ExpressionParser::concat() {
  ExprPtr first = product();
  if (!at_operator("~")) return first;
  Concat made;
  made.items.push_back(std::move(first));
  while (skip_operator("~")) made.items.push_back(product());
  const int depth = depth_of(made.items);
  return make(std::move(made), depth);
}

ExprPtr ExpressionParser::product() {
  constexpr std::array<std::pair<std::string_view, BinaryOp>, 4> kOperators = {
      {{"*", BinaryOp::kMultiply},
       {"/", BinaryOp::kDivide},
       {"//", BinaryOp::kFloorDivide},
       {"%", BinaryOp::kModulo}}};
  ExprPtr left = power();
  while (true) {
    const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                    [&](const auto& known) { return at_operator(known.first); });
    if (found == kOperators.end()) return left;
    next();
    ExprPtr right = power();
    const int depth = depth_of({&left, &right});
    left = make(Binary{found->second, std::move(left), std::move(right)}, depth);
  }
}

ExprPtr ExpressionParser::power() {
  ExprPtr left = unary(true);
  while (skip_operator("**")) {
    ExprPtr right = unary(true);
    const int depth = depth_of({&left, &right});
    left = make(Binary{BinaryOp::kPower, std::move(left), std::move(right)}, depth);
  }
  return left;
}

ExprPtr ExpressionParser::unary(bool with_filters) {
  ExprPtr made;
  if (at_operator("-") || at_operator("+")) {
    const Nesting nesting(*this);
    const UnaryOp op = next().text == "-" ? UnaryOp::kNegate : UnaryOp::kPlus;
    ExprPtr operand = unary(false);
    const int depth = operand->depth;
    made = make(Unary{op, std::move(operand)}, depth);
  } else {
    made = primary();
  }
  made = postfix(std::move(made));
  return with_filters ? filters(std::move(made)) : std::move(made);
}

ExprPtr ExpressionParser::primary() {
  const Token& token = peek();
  switch (token.kind) {
    case TokenKind::kName: return name_or_constant();
    case TokenKind::kString: return string();
    case TokenKind::kInteger: return literal(Value(next().integer));
    case TokenKind::kFloat: return literal(Value(next().real));
    default: break;
  }
  if (skip_operator("(")) {
    ExprPtr made = tuple_items(true, "", true);
    expect_operator(")");
    return made;
  }
  if (at_operator("[")) return list();
  if (at_operator("{")) return dict();
  fail_here(token.text.empty() ? "an expression is missing"
                               : fmt::format("unexpected '{}'", token.text));
}

ExprPtr ExpressionParser::name_or_constant() {
  const std::string& name = next().text;
  if (name == "true" || name == "True") return literal(Value(true));
  if (name == "false" || name == "False") return literal(Value(false));
  if (name == "none" || name == "None") return literal(Value(None{}));
  if (macro_ != nullptr) {
    macro_->takes_varargs |= name == "varargs";
    macro_->takes_kwargs |= name == "kwargs";
    macro_->takes_caller |= name == "caller";
  }
  return make(Name{name}, 0);
}

ExprPtr ExpressionParser::string() {
  std::string text = next().text;
  while (peek().kind == TokenKind::kString) text += next().text;
  return literal(
      Value(std::make_shared<const String>(Text(std::move(text), false), false, nullptr)));
}

ExprPtr ExpressionParser::list() {
  expect_operator("[");
  SequenceLiteral made{false, {}};
  while (!at_operator("]")) {
    if (!made.items.empty()) expect_operator(",");
    if (at_operator("]")) break;
    made.items.push_back(parse(true));
  }
  expect_operator("]");
  const int depth = depth_of(made.items);
  return make(std::move(made), depth);
}

ExprPtr ExpressionParser::dict() {
  expect_operator("{");
  DictLiteral made;
  int depth = 0;
  while (!at_operator("}")) {
    if (!made.entries.empty()) expect_operator(",");
    if (at_operator("}")) break;
    ExprPtr key = parse(true);
    expect_operator(":");
    ExprPtr value = parse(true);
    depth = std::max(depth, depth_of({&key, &value}));
    made.entries.emplace_back(std::move(key), std::move(value));
  }
  expect_operator("}");
  return make(std::move(made), depth);
}

bool ExpressionParser::is_tuple_end(std::string_view end_name) const {
  const TokenKind kind = peek().kind;
  return kind == TokenKind::kOutputEnd || kind == TokenKind::kBlockEnd || at_operator(")") ||
         (!end_name.empty() && at_name(end_name));
}

ExprPtr ExpressionParser::tuple_items(bool with_conditional, std::string_view end_name,
                                      bool in_parentheses) {
  SequenceLiteral made{true, {}};
  bool has_comma = false;
  while (!is_tuple_end(end_name)) {
    made.items.push_back(parse(with_conditional));
    if (!skip_operator(",")) break;
    has_comma = true;
  }
  if (!has_comma && !made.items.empty()) return std::move(made.items.front());
  if (made.items.empty() && !in_parentheses) fail_here("an expression is missing");
  const int depth = depth_of(made.items);
  return make(std::move(made), depth);
}

ExprPtr ExpressionParser::postfix(ExprPtr operand) {
  while (true) {
    if (at_operator(".") || at_operator("[")) {
      operand = subscript(std::move(operand));
    } else if (at_operator("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExprPtr ExpressionParser::filters(ExprPtr operand) {
  while (true) {
    if (skip_operator("|")) {
      FilterCall made = filter_call();
      const int depth = std::max(depth_of(operand), depth_of(made.arguments));
      made.operand = std::move(operand);
      operand = make(std::move(made), depth);
    } else if (skip_name("is")) {
      operand = test(std::move(operand));
    } else if (at_operator("(")) {
      operand = call(std::move(operand));
    } else {
      return operand;
    }
  }
}

ExprPtr ExpressionParser::subscript(ExprPtr operand) {
  if (skip_operator(".")) {
    int depth = depth_of(operand);
    if (peek().kind == TokenKind::kInteger) {
      ExprPtr key = literal(Value(next().integer));
      return make(Subscript{std::move(operand), std::move(key)}, depth);
    }
    return make(Attribute{std::move(operand), expect_name()}, depth);
  }
  expect_operator("[");
  ExprPtr start;
  if (!at_operator(":")) {
    start = parse(true);
    if (at_operator(",")) fail_here("a subscript takes one key");
    if (skip_operator("]")) {
      const int depth = depth_of({&operand, &start});
      return make(Subscript{std::move(operand), std::move(start)}, depth);
    }
  }
  expect_operator(":");
  ExprPtr stop = at_operator(":") || at_operator("]") ? nullptr : parse(true);
  ExprPtr step = skip_operator(":") && !at_operator("]") ? parse(true) : nullptr;
  expect_operator("]");
  const int depth = depth_of({&operand, &start, &stop, &step});
  return make(Slice{std::move(operand), std::move(start), std::move(stop), std::move(step)}, depth);
}

CallArguments ExpressionParser::call_arguments() {
  CallArguments made;
  expect_operator("(");
  bool first = true;
  while (!at_operator(")")) {
    if (!std::exchange(first, false)) {
      expect_operator(",");
      if (at_operator(")")) break;
    }
    if (skip_operator("**")) {
      made.spread_dict = parse(true);
    } else if (skip_operator("*")) {
      made.spread_list = parse(true);
    } else if (peek().kind == TokenKind::kName && tokens_[at_ + 1].is(TokenKind::kOperator, "=")) {
      std::string name = next().text;
      next();
      made.named.emplace_back(std::move(name), parse(true));
    } else {
      if (!made.named.empty()) fail_here("a positional argument follows a named one");
      made.positional.push_back(parse(true));
    }
  }
  expect_operator(")");
  return made;
}

ExprPtr ExpressionParser::call(ExprPtr callee) {
  CallArguments arguments = call_arguments();
  const int depth = std::max(depth_of(callee), depth_of(arguments));
  return make(Call{std::move(callee), std::move(arguments)}, depth);
}

std::string ExpressionParser::dotted_name() {
  std::string name = expect_name();
  while (skip_operator(".")) name.append(".").append(expect_name());
  return name;
}

FilterCall ExpressionParser::filter_call() {
  FilterCall made{dotted_name(), nullptr, nullptr, {}};
  made.function = find_filter(made.name);
  if (made.function == nullptr) note_unknown("filter", made.name);
  if (at_operator("(")) made.arguments = call_arguments();
  return made;
}

ExprPtr ExpressionParser::test(ExprPtr operand) {
  TestCall made{"", nullptr, skip_name("not"), nullptr, {}};
  made.name = dotted_name();
  made.function = find_test(made.name);
  if (made.function == nullptr) note_unknown("test", made.name);
  const TokenKind kind = peek().kind;
  const bool has_operand = kind == TokenKind::kName || kind == TokenKind::kString ||
                           kind == TokenKind::kInteger || kind == TokenKind::kFloat ||
                           at_operator("[") || at_operator("{");
  const bool ends = at_name("else") || at_name("or") || at_name("and");
  if (at_operator("(")) {
    made.arguments = call_arguments();
  } else if (has_operand && !ends) {
    if (at_name("is")) fail_here("tests cannot be chained with 'is'");
    const Nesting nesting(*this);
    made.arguments.positional.push_back(postfix(primary()));
  }
  const int depth = std::max(depth_of(operand), depth_of(made.arguments));
  made.operand = std::move(operand);
  return make(std::move(made), depth);
}

}  // namespace strata::jinja
