// Walks the syntax tree of one template, once.
#pragma once

#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template/ast.h"
#include "text/template/runtime.h"

namespace strata::jinja {

// Names and their values; look-ups go on in the parent.
struct Scope {
  Scope* parent = nullptr;
  bool captured = false;  // a macro may still need it when its block is left
  std::vector<std::pair<std::string_view, Value>> names;

  void set(std::string_view name, Value value);
};

enum class Flow { kNext, kBreak, kContinue };

class Loop;
class Macro;

// Not thread-safe. Throws TemplateError. The body and the inputs' names must outlive it.
class Interpreter {
 public:
  Interpreter(Runtime& runtime, std::vector<std::pair<std::string_view, Value>> inputs);

  Text render(const Body& body);
  int line() const { return line_; }  // of the statement being executed

  // For the objects that run parts of the template.
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value call_loop(const Loop& loop, const Value& items);

 private:
  // A scope for as long as it lives; reused afterwards unless captured.
  class Block {
   public:
    Block(Interpreter& interpreter, Scope* parent);
    Block(const Block&) = delete;
    Block& operator=(const Block&) = delete;
    ~Block();
    void renew();  // for the next round of a loop

   private:
    Interpreter& interpreter_;
    Scope* saved_;
  };

  Scope* new_scope(Scope* parent);
  void release(Scope* scope);
  void capture_scopes();
  Value lookup(std::string_view name);

  Flow execute(const Body& body);
  Flow execute(const Statement& statement);
  Flow run(const RawText& text);
  Flow run(const Output& output);
  Flow run(const Assign& assign);
  Flow run(const AssignBlock& assign);
  Flow run(const If& statement);
  Flow run(const For& loop);
  Flow run(const DefineMacro& define);
  Flow run(const CallBlock& block);
  Flow run(const FilterBlock& block);
  Flow run(const With& block);
  Flow run(const LoopControl& control);
  // The body's text in a scope of its own.
  std::pair<Flow, Value> captured(const Body& body);
  Flow run_loop(const For& loop, const Value& iterable, Scope* outer, int depth);
  // The items of `iterable` that pass the loop's condition, as a sequence.
  Value items_of(const For& loop, const Value& iterable, Scope* outer);
  void assign(const Target& target, const Value& value);
  void bind_parameters(const Macro& macro, const Arguments& arguments);
  Value apply(const std::vector<FilterCall>& filters, Value value);

  Value evaluate(const Expr& expr);
  Value eval(const Literal& literal) { return literal.value; }
  Value eval(const Name& name) { return lookup(name.name); }
  Value eval(const SequenceLiteral& sequence);
  Value eval(const DictLiteral& dict);
  Value eval(const Unary& unary);
  Value eval(const Binary& binary);
  Value eval(const Concat& concat);
  Value eval(const Logical& logical);
  Value eval(const Comparison& comparison);
  Value eval(const Conditional& conditional);
  Value eval(const Attribute& attribute);
  Value eval(const Subscript& subscript);
  Value eval(const Slice& slice);
  Value eval(const Call& call);
  Value eval(const FilterCall& filter);
  Value eval(const TestCall& test);
  Arguments evaluate(const CallArguments& arguments);

  Runtime& runtime_;
  std::deque<Scope> scopes_;
  std::vector<Scope*> free_scopes_;
  Scope* scope_ = nullptr;
  Text* out_ = nullptr;
  int line_ = 0;
};

class Macro final : public Object {
 public:
  Macro(Interpreter& interpreter, const MacroDefinition& macro, Scope* around)
      : definition(macro), scope(around), interpreter_(interpreter) {}
  std::string type_name() const override { return "Macro"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool callable() const override { return true; }
  Value call(Runtime&, const Arguments& arguments) override {
    return interpreter_.call_macro(*this, arguments);
  }

  const MacroDefinition& definition;
  Scope* const scope;  // where it was defined

 private:
  Interpreter& interpreter_;
};

// The `loop` of a for block.
class Loop final : public Object {
 public:
  Loop(Interpreter& interpreter, const For& loop, Scope* around, Value sequence, int recursion)
      : definition(loop),
        scope(around),
        depth(recursion),
        interpreter_(interpreter),
        sequence_(std::move(sequence)) {}
  std::string type_name() const override { return "LoopContext"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool callable() const override { return definition.recursive; }
  Value call(Runtime& runtime, const Arguments& arguments) override;
  bool changed(Runtime& runtime, const std::vector<Value>& values);

  const For& definition;
  Scope* const scope;  // around the block
  const std::vector<Value>& items() const { return sequence_.sequence().items; }
  void end() { sequence_ = Value(); }  // lets go of the items

  const int depth;  // of recursion, from 0
  std::size_t index = 0;

 private:
  Interpreter& interpreter_;
  Value sequence_;                                 // undefined once the loop has ended
  std::optional<std::vector<Value>> last_values_;  // of loop.changed()
};

}  // namespace strata::jinja
