// The two halves of the recursive-descent parser. Grammar: Jinja 3's own parser.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stack_room.h"
#include "text/template/ast.h"
#include "text/template/error.h"
#include "text/template/lexer.h"
#include "text/template/limits.h"

namespace strata::jinja {

// A cursor over tokens, and the expressions.
class ExpressionParser {
 public:
  ExpressionParser(std::vector<Token> tokens, const RenderLimits& limits)
      : tokens_(std::move(tokens)), depth_limit_(limits.syntax_depth) {}

 protected:
  // Counts nested constructs while they are being parsed.
  class Nesting {
   public:
    explicit Nesting(ExpressionParser& parser) : parser_(parser) {
      if (++parser_.depth_ > parser_.depth_limit_)
        parser_.fail_here("the template is nested too deeply");
      if (!parser_.stack_.is_left())
        parser_.fail_here("the template is nested too deeply for this thread's stack");
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --parser_.depth_; }

   private:
    ExpressionParser& parser_;
  };

  const Token& peek() const { return tokens_[at_]; }
  const Token& next() { return tokens_[peek().kind == TokenKind::kEnd ? at_ : at_++]; }
  bool at_operator(std::string_view op) const { return peek().is(TokenKind::kOperator, op); }
  bool at_name(std::string_view name) const { return peek().is(TokenKind::kName, name); }
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_operator(std::string_view op);
  std::string expect_name();
  void expect(TokenKind kind, std::string_view what);
  [[noreturn]] void fail_here(std::string message) const;

  // An expression of a statement: unknown filters and tests in it are errors, except where a
  // condition guards them, as in Jinja.
  ExprPtr expression(bool with_conditional = true);
  // An expression, or a tuple of several with commas between.
  ExprPtr tuple(bool with_conditional = true, std::string_view end_name = "");
  CallArguments call_arguments();
  FilterCall filter_call();
  bool is_tuple_end(std::string_view end_name) const;

  bool guarded_ = false;              // inside an if, where unknown filters fail only when reached
  MacroDefinition* macro_ = nullptr;  // being parsed

 private:
  template <typename Node>
  ExprPtr make(Node node, int depth_below) {
    if (depth_below >= 2 * depth_limit_) fail_here("an expression is nested too deeply");
    return std::make_unique<Expr>(Expr{std::move(node), depth_below + 1});
  }
  static int depth_of(const ExprPtr& expr) { return expr == nullptr ? 0 : expr->depth; }
  static int depth_of(std::initializer_list<const ExprPtr*> exprs);
  static int depth_of(const std::vector<ExprPtr>& exprs);
  static int depth_of(const CallArguments& arguments);
  ExprPtr literal(Value value) { return make(Literal{std::move(value)}, 0); }

  ExprPtr parse(bool with_conditional);
  ExprPtr conditional();
  ExprPtr logical_or();
  ExprPtr logical_and();
  ExprPtr logical_not();
  ExprPtr comparison();
  ExprPtr sum();
  ExprPtr concat();
  ExprPtr product();
  ExprPtr power();
  ExprPtr unary(bool with_filters);
  ExprPtr primary();
  ExprPtr name_or_constant();
  ExprPtr string();
  ExprPtr list();
  ExprPtr dict();
  ExprPtr tuple_items(bool with_conditional, std::string_view end_name, bool in_parentheses);
  ExprPtr postfix(ExprPtr operand);
  ExprPtr filters(ExprPtr operand);
  ExprPtr subscript(ExprPtr operand);
  ExprPtr call(ExprPtr callee);
  ExprPtr test(ExprPtr operand);
  std::string dotted_name();
  void note_unknown(std::string_view kind, std::string_view name);

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int depth_limit_;
  const StackRoom stack_;
  std::vector<std::string> unknown_;  // filters and tests of the current expression
};

}  // namespace strata::jinja
