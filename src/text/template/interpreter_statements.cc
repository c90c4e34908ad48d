#include <algorithm>

#include "text/template/error.h"
#include "text/template/functions.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"

namespace strata::jinja {

void Scope::set(std::string_view name, Value value) {
  for (auto& [known, old] : names) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  names.emplace_back(name, std::move(value));
}

Interpreter::Interpreter(Runtime& runtime, std::vector<std::pair<std::string_view, Value>> inputs)
    : runtime_(runtime) {
  scope_ = new_scope(nullptr);
  scope_->names = make_globals(runtime);
  scope_ = new_scope(scope_);
  for (auto& [name, value] : inputs) scope_->set(name, std::move(value));
}

Text Interpreter::render(const Body& body) {
  Text out;
  out_ = &out;
  execute(body);
  return out;
}

Scope* Interpreter::new_scope(Scope* parent) {
  if (free_scopes_.empty()) {
    constexpr std::size_t kScopeBytes = sizeof(Scope) + 4 * sizeof(Scope::names[0]);
    runtime_.meter().take(kScopeBytes);
    free_scopes_.push_back(&scopes_.emplace_back());
    // Room for all, so that giving scopes back cannot fail.
    if (free_scopes_.capacity() < scopes_.size()) free_scopes_.reserve(2 * scopes_.size());
  }
  Scope* scope = free_scopes_.back();
  free_scopes_.pop_back();
  scope->parent = parent;
  return scope;
}

void Interpreter::release(Scope* scope) {
  if (scope->captured) return;
  scope->names.clear();
  free_scopes_.push_back(scope);
}

void Interpreter::capture_scopes() {
  for (Scope* scope = scope_; scope != nullptr && !scope->captured; scope = scope->parent)
    scope->captured = true;
}

Interpreter::Block::Block(Interpreter& interpreter, Scope* parent)
    : interpreter_(interpreter), saved_(interpreter.scope_) {
  interpreter_.scope_ = interpreter_.new_scope(parent);
}

Interpreter::Block::~Block() {
  interpreter_.release(interpreter_.scope_);
  interpreter_.scope_ = saved_;
}

void Interpreter::Block::renew() {
  Scope* const parent = interpreter_.scope_->parent;
  interpreter_.release(interpreter_.scope_);
  interpreter_.scope_ = interpreter_.new_scope(parent);
}

Flow Interpreter::execute(const Body& body) {
  const Runtime::Depth depth(runtime_);
  for (const Statement& statement : body) {
    if (const Flow flow = execute(statement); flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Flow Interpreter::execute(const Statement& statement) {
  runtime_.work(1);
  line_ = statement.line;
  return std::visit([this](const auto& node) { return run(node); }, statement.node);
}

Flow Interpreter::run(const RawText& text) {
  runtime_.append(*out_, text.text.text());
  return Flow::kNext;
}

Flow Interpreter::run(const Output& output) {
  const Value value = evaluate(*output.expression);
  if (value.is(Type::kString)) {
    runtime_.append(*out_, value.text());
  } else {
    runtime_.append(*out_, to_text(runtime_, value));
  }
  return Flow::kNext;
}

Flow Interpreter::run(const Assign& assignment) {
  assign(assignment.target, evaluate(*assignment.value));
  return Flow::kNext;
}

Flow Interpreter::run(const AssignBlock& assignment) {
  auto [flow, text] = captured(assignment.body);
  if (flow == Flow::kNext) assign(assignment.target, apply(assignment.filters, std::move(text)));
  return flow;
}

Flow Interpreter::run(const If& statement) {
  for (const auto& [condition, body] : statement.branches) {
    if (truth(evaluate(*condition))) return execute(body);
  }
  return execute(statement.otherwise);
}

Flow Interpreter::run(const For& loop) {
  const Value iterable = evaluate(*loop.iterable);
  if (loop.recursive) capture_scopes();
  return run_loop(loop, iterable, scope_, 0);
}

Value Interpreter::items_of(const For& loop, const Value& iterable, Scope* outer) {
  if (loop.condition == nullptr && iterable.is(Type::kSequence)) return iterable;
  std::vector<Value> items = iterate(runtime_, iterable);
  if (loop.condition == nullptr) return runtime_.list(std::move(items));
  Block block(*this, outer);
  std::vector<Value> out;
  for (Value& item : items) {
    block.renew();
    assign(loop.target, item);
    if (truth(evaluate(*loop.condition))) out.push_back(std::move(item));
  }
  return runtime_.list(std::move(out));
}

Flow Interpreter::run_loop(const For& loop, const Value& iterable, Scope* outer, int depth) {
  const Value items = items_of(loop, iterable, outer);
  if (items.sequence().items.empty()) {
    Block block(*this, outer);
    return execute(loop.otherwise);
  }
  Loop* const state = runtime_.create<Loop>(*this, loop, outer, items, depth);
  Block block(*this, outer);
  for (; state->index < items.sequence().items.size(); ++state->index) {
    runtime_.work(1);
    if (state->index != 0) block.renew();
    scope_->set("loop", Value(state));
    assign(loop.target, items.sequence().items[state->index]);
    if (execute(loop.body) == Flow::kBreak) break;
  }
  state->end();
  return Flow::kNext;
}

Value Interpreter::call_loop(const Loop& loop, const Value& items) {
  const Runtime::Depth depth(runtime_);
  Text buffer;
  Text* const saved = std::exchange(out_, &buffer);
  run_loop(loop.definition, items, loop.scope, loop.depth + 1);
  out_ = saved;
  return runtime_.string(std::move(buffer));
}

Flow Interpreter::run(const DefineMacro& define) {
  capture_scopes();
  scope_->set(define.macro->name, Value(runtime_.create<Macro>(*this, *define.macro, scope_)));
  return Flow::kNext;
}

Flow Interpreter::run(const CallBlock& block) {
  if (block.call == nullptr) {
    const auto [flow, text] = captured(block.caller->body);
    runtime_.append(*out_, text.text());
    return flow;
  }
  capture_scopes();
  Macro* const caller = runtime_.create<Macro>(*this, *block.caller, scope_);
  const Call& call = std::get<Call>(block.call->node);
  const Value callee = evaluate(*call.callee);
  Arguments arguments = evaluate(call.arguments);
  arguments.named.emplace_back("caller", Value(caller));
  const Runtime::Depth depth(runtime_);
  runtime_.append(*out_, to_text(runtime_, strata::jinja::call(runtime_, callee, arguments)));
  return Flow::kNext;
}

Flow Interpreter::run(const FilterBlock& block) {
  auto [flow, text] = captured(block.body);
  if (flow == Flow::kNext)
    runtime_.append(*out_, to_text(runtime_, apply(block.filters, std::move(text))));
  return flow;
}

Flow Interpreter::run(const With& block) {
  std::vector<Value> values;
  for (const auto& [target, value] : block.values) values.push_back(evaluate(*value));
  Block scope(*this, scope_);
  for (std::size_t i = 0; i < values.size(); ++i) assign(block.values[i].first, values[i]);
  return execute(block.body);
}

Flow Interpreter::run(const LoopControl& control) {
  return control == LoopControl::kBreak ? Flow::kBreak : Flow::kContinue;
}

std::pair<Flow, Value> Interpreter::captured(const Body& body) {
  Block block(*this, scope_);
  Text buffer;
  Text* const saved = std::exchange(out_, &buffer);
  const Flow flow = execute(body);
  out_ = saved;
  return {flow, runtime_.string(std::move(buffer))};
}

Value Interpreter::apply(const std::vector<FilterCall>& filters, Value value) {
  for (const FilterCall& filter : filters) {
    if (filter.function == nullptr) fail("No filter named '{}'.", filter.name);
    value = filter.function(runtime_, value, evaluate(filter.arguments));
  }
  return value;
}

void Interpreter::assign(const Target& target, const Value& value) {
  if (!target.items.empty()) {
    const std::vector<Value> items = iterate(runtime_, value);
    if (items.size() < target.items.size())
      fail("not enough values to unpack (expected {}, got {})", target.items.size(), items.size());
    if (items.size() > target.items.size())
      fail("too many values to unpack (expected {})", target.items.size());
    for (std::size_t i = 0; i < items.size(); ++i) assign(target.items[i], items[i]);
  } else if (!target.attribute.empty()) {
    const Value owner = lookup(target.name);
    auto* found = owner.is(Type::kObject) ? dynamic_cast<Namespace*>(owner.object()) : nullptr;
    if (found == nullptr) fail("cannot assign attribute on non-namespace object");
    found->set(runtime_, target.attribute, value);
  } else {
    scope_->set(target.name, value);
  }
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Runtime::Depth depth(runtime_);
  const int line = line_;
  Block block(*this, macro.scope);
  Text buffer;
  Text* const saved = std::exchange(out_, &buffer);
  bind_parameters(macro, arguments);
  execute(macro.definition.body);
  out_ = saved;
  line_ = line;
  return runtime_.string(std::move(buffer));
}

// Into the scope of the macro's body, which is the current one.
void Interpreter::bind_parameters(const Macro& macro, const Arguments& arguments) {
  const MacroDefinition& definition = macro.definition;
  const std::size_t count = definition.parameters.size();
  const std::size_t given = arguments.positional.size();
  if (given > count && !definition.takes_varargs)
    fail("macro '{}' takes not more than {} argument(s)", definition.name, count);
  std::vector<bool> used(arguments.named.size(), false);
  const auto named = [&](std::string_view name) -> const Value* {
    for (std::size_t i = 0; i < arguments.named.size(); ++i) {
      if (used[i] || arguments.named[i].first != name) continue;
      used[i] = true;
      return &arguments.named[i].second;
    }
    return nullptr;
  };
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = definition.parameters[i];
    if (i < given) {
      scope_->set(parameter.name, arguments.positional[i]);
    } else if (const Value* value = named(parameter.name); value != nullptr) {
      scope_->set(parameter.name, *value);
    } else if (parameter.fallback != nullptr) {
      scope_->set(parameter.name, evaluate(*parameter.fallback));
    } else {
      scope_->set(parameter.name, runtime_.undefined(fmt::format("parameter '{}' was not provided",
                                                                 parameter.name)));
    }
  }
  if (definition.takes_caller) {
    const Value* caller = named("caller");
    scope_->set("caller", caller != nullptr ? *caller : runtime_.undefined("No caller defined"));
  }
  std::vector<std::pair<Value, Value>> rest;
  for (std::size_t i = 0; i < used.size(); ++i) {
    const auto& [name, value] = arguments.named[i];
    if (!used[i] && !definition.takes_kwargs)
      fail("macro '{}' takes no keyword argument '{}'", definition.name, name);
    if (!used[i]) rest.emplace_back(runtime_.string(name, false), value);
  }
  if (definition.takes_kwargs) scope_->set("kwargs", runtime_.dict(std::move(rest)));
  if (definition.takes_varargs) {
    const auto& values = arguments.positional;
    const auto first = values.begin() + static_cast<std::ptrdiff_t>(std::min(count, given));
    scope_->set("varargs", runtime_.tuple({first, values.end()}));
  }
}

}  // namespace strata::jinja
