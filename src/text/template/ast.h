// The syntax tree of a template. Immutable once parsed; safe to evaluate from any thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/template/builtins.h"
#include "text/template/value.h"

namespace strata::jinja {

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct CallArguments {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr spread_list;  // *args
  ExprPtr spread_dict;  // **kwargs
};

struct Literal {
  Value value;
};
struct Name {
  std::string name;
};
struct SequenceLiteral {
  bool tuple;
  std::vector<ExprPtr> items;
};
struct DictLiteral {
  std::vector<std::pair<ExprPtr, ExprPtr>> entries;
};
enum class UnaryOp { kNot, kNegate, kPlus };
struct Unary {
  UnaryOp op;
  ExprPtr operand;
};
enum class BinaryOp { kAdd, kSubtract, kMultiply, kDivide, kFloorDivide, kModulo, kPower };
struct Binary {
  BinaryOp op;
  ExprPtr left, right;
};
struct Concat {  // a ~ b ~ c
  std::vector<ExprPtr> items;
};
struct Logical {  // and, or: yields one of its operands
  bool is_and;
  ExprPtr left, right;
};
enum class CompareOp { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn };
struct Comparison {  // first op operand op operand ..., as Python chains them
  ExprPtr first;
  std::vector<std::pair<CompareOp, ExprPtr>> rest;
};
struct Conditional {                   // then if condition else otherwise
  ExprPtr condition, then, otherwise;  // otherwise: null where there is no else
};
struct Attribute {
  ExprPtr object;
  std::string name;
};
struct Subscript {
  ExprPtr object, key;
};
struct Slice {
  ExprPtr object, start, stop, step;  // the last three may be null
};
struct Call {
  ExprPtr callee;
  CallArguments arguments;
};
struct FilterCall {
  std::string name;
  FilterFunction function;  // null: unknown, an error where it is reached
  ExprPtr operand;          // null: the text of a filter block
  CallArguments arguments;
};
struct TestCall {
  std::string name;
  TestFunction function;  // null: unknown, an error where it is reached
  bool negated;
  ExprPtr operand;
  CallArguments arguments;
};

struct Expr {
  std::variant<Literal, Name, SequenceLiteral, DictLiteral, Unary, Binary, Concat, Logical,
               Comparison, Conditional, Attribute, Subscript, Slice, Call, FilterCall, TestCall>
      node;
  int depth;  // of the tree below, 1 for a leaf
};

struct Statement;
using Body = std::vector<Statement>;

// What an assignment writes to: a name, an attribute of a namespace, or a tuple of targets.
struct Target {
  std::string name;
  std::string attribute;      // of the namespace `name`; empty for a plain name
  std::vector<Target> items;  // the tuple's; empty otherwise
};

struct RawText {
  Value text;
};
struct Output {
  ExprPtr expression;
};
struct Assign {
  Target target;
  ExprPtr value;
};
struct AssignBlock {
  Target target;
  std::vector<FilterCall> filters;
  Body body;
};
struct If {
  std::vector<std::pair<ExprPtr, Body>> branches;
  Body otherwise;
};
struct For {
  Target target;
  ExprPtr iterable;
  ExprPtr condition;  // may be null
  bool recursive;
  Body body;
  Body otherwise;
};
struct Parameter {
  std::string name;
  ExprPtr fallback;  // null: undefined where it is not given
};
struct MacroDefinition {
  std::string name;
  std::vector<Parameter> parameters;
  bool takes_varargs = false, takes_kwargs = false, takes_caller = false;
  Body body;
};
struct DefineMacro {
  std::unique_ptr<MacroDefinition> macro;
};
struct CallBlock {
  std::unique_ptr<MacroDefinition> caller;
  ExprPtr call;  // null: the body is rendered as it is, in its own scope (generation)
};
struct FilterBlock {
  std::vector<FilterCall> filters;
  Body body;
};
struct With {
  std::vector<std::pair<Target, ExprPtr>> values;
  Body body;
};
enum class LoopControl { kBreak, kContinue };

struct Statement {
  std::variant<RawText, Output, Assign, AssignBlock, If, For, DefineMacro, CallBlock, FilterBlock,
               With, LoopControl>
      node;
  int line;
};

}  // namespace strata::jinja
