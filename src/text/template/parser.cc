#include "text/template/parser.h"

#include <array>

#include "text/template/parser_impl.h"

namespace strata::jinja {
namespace {

class Parser : private ExpressionParser {
 public:
  using ExpressionParser::ExpressionParser;
  Body run();

 private:
  // Statements up to a block that starts with one of `ends`, which is left to the caller.
  Body body(std::initializer_list<std::string_view> ends);
  // The same, past the named end tag.
  Body body_until(std::string_view end);
  void block(Body& out);
  void end_of_block() { expect(TokenKind::kBlockEnd, "the end of the tag"); }

  void if_statement(Body& out, int line);
  void for_statement(Body& out, int line);
  void set_statement(Body& out, int line);
  void macro_statement(Body& out, int line);
  void call_statement(Body& out, int line);
  void generation_statement(Body& out, int line);
  void filter_statement(Body& out, int line);
  void with_statement(Body& out, int line);
  void print_statement(Body& out, int line);
  void loop_control(Body& out, int line, LoopControl control);

  Target target(bool with_attribute, std::string_view end_name);
  Target single_target(bool with_attribute);
  std::vector<FilterCall> filter_chain();
  std::vector<Parameter> parameters();
  void macro_body(MacroDefinition& macro, std::string_view end);

  // Runs `parse` with the given guard, as a new scope of the template resets it.
  template <typename Parse>
  void guarded(bool guard, Parse parse) {
    const bool saved = std::exchange(guarded_, guard);
    parse();
    guarded_ = saved;
  }

  int loops_ = 0;  // being parsed, in this macro
};

Body Parser::run() {
  Body made = body({});
  if (peek().kind != TokenKind::kEnd) fail_here(fmt::format("unexpected '{}'", peek().text));
  return made;
}

Body Parser::body(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(*this);
  Body out;
  while (peek().kind != TokenKind::kEnd) {
    const int line = peek().line;
    if (peek().kind == TokenKind::kText) {
      Text text(next().text, false);
      out.push_back(
          {RawText{Value(std::make_shared<const String>(std::move(text), false, nullptr))}, line});
    } else if (peek().kind == TokenKind::kOutput) {
      next();
      out.push_back({Output{tuple()}, line});
      expect(TokenKind::kOutputEnd, "the end of the tag");
    } else {
      expect(TokenKind::kBlock, "a tag");
      if (std::any_of(ends.begin(), ends.end(), [&](auto end) { return at_name(end); })) return out;
      block(out);
    }
  }
  if (ends.size() != 0) fail_here(fmt::format("a block is not closed: missing {}", *ends.begin()));
  return out;
}

Body Parser::body_until(std::string_view end) {
  Body made = body({end});
  next();
  end_of_block();
  return made;
}

void Parser::block(Body& out) {
  const int line = peek().line;
  const std::string name = expect_name();
  if (name == "if") return if_statement(out, line);
  if (name == "for") return for_statement(out, line);
  if (name == "set") return set_statement(out, line);
  if (name == "macro") return macro_statement(out, line);
  if (name == "call") return call_statement(out, line);
  if (name == "generation") return generation_statement(out, line);
  if (name == "filter") return filter_statement(out, line);
  if (name == "with") return with_statement(out, line);
  if (name == "print") return print_statement(out, line);
  if (name == "break") return loop_control(out, line, LoopControl::kBreak);
  if (name == "continue") return loop_control(out, line, LoopControl::kContinue);
  constexpr std::array<std::string_view, 5> kRefused = {"include", "import", "from", "extends",
                                                        "block"};
  if (std::find(kRefused.begin(), kRefused.end(), name) != kRefused.end())
    fail_here(fmt::format("a chat template is one file: '{}' is refused", name));
  fail_here(fmt::format("Encountered unknown tag '{}'.", name));
}

void Parser::if_statement(Body& out, int line) {
  If made;
  guarded(true, [&] {
    while (true) {
      ExprPtr condition = tuple(false);
      end_of_block();
      Body then = body({"endif", "elif", "else"});
      made.branches.emplace_back(std::move(condition), std::move(then));
      if (skip_name("elif")) continue;
      if (skip_name("else")) {
        end_of_block();
        made.otherwise = body({"endif"});
      }
      next();
      end_of_block();
      return;
    }
  });
  out.push_back({std::move(made), line});
}

Target Parser::single_target(bool with_attribute) {
  if (skip_operator("(")) {
    const Nesting nesting(*this);
    Target made = target(with_attribute, "");
    expect_operator(")");
    return made;
  }
  Target made;
  made.name = expect_name();
  constexpr std::array<std::string_view, 6> kConstants = {"true", "false", "none",
                                                          "True", "False", "None"};
  if (std::find(kConstants.begin(), kConstants.end(), made.name) != kConstants.end())
    fail_here(fmt::format("can't assign to '{}'", made.name));
  if (with_attribute && skip_operator(".")) made.attribute = expect_name();
  return made;
}

Target Parser::target(bool with_attribute, std::string_view end_name) {
  Target first = single_target(with_attribute);
  if (!at_operator(",")) return first;
  Target made;
  made.items.push_back(std::move(first));
  while (skip_operator(",")) {
    if (is_tuple_end(end_name) || at_operator("=")) break;
    made.items.push_back(single_target(with_attribute));
  }
  return made;
}

void Parser::for_statement(Body& out, int line) {
  For made;
  made.target = target(false, "in");
  if (!skip_name("in")) fail_here("expected 'in'");
  made.iterable = tuple(false, "recursive");
  if (skip_name("if")) made.condition = expression();
  made.recursive = skip_name("recursive");
  end_of_block();
  guarded(false, [&] {
    ++loops_;
    made.body = body({"endfor", "else"});
    --loops_;
    if (skip_name("else")) {
      end_of_block();
      made.otherwise = body({"endfor"});
    }
  });
  next();
  end_of_block();
  out.push_back({std::move(made), line});
}

std::vector<FilterCall> Parser::filter_chain() {
  std::vector<FilterCall> made;
  while (skip_operator("|")) {
    made.push_back(filter_call());
    if (made.back().function == nullptr && !guarded_)
      fail_here(fmt::format("No filter named '{}'.", made.back().name));
  }
  return made;
}

void Parser::set_statement(Body& out, int line) {
  Target name = target(true, "");
  if (skip_operator("=")) {
    ExprPtr value = tuple();
    end_of_block();
    out.push_back({Assign{std::move(name), std::move(value)}, line});
    return;
  }
  AssignBlock made{std::move(name), filter_chain(), {}};
  end_of_block();
  guarded(false, [&] { made.body = body_until("endset"); });
  out.push_back({std::move(made), line});
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> made;
  expect_operator("(");
  while (!at_operator(")")) {
    if (!made.empty()) expect_operator(",");
    if (at_operator(")")) break;
    Parameter parameter{expect_name(), nullptr};
    if (skip_operator("=")) {
      parameter.fallback = expression();
    } else if (!made.empty() && made.back().fallback != nullptr) {
      fail_here("a parameter without a default follows one with a default");
    }
    made.push_back(std::move(parameter));
  }
  expect_operator(")");
  return made;
}

void Parser::macro_body(MacroDefinition& macro, std::string_view end) {
  MacroDefinition* const outer = std::exchange(macro_, &macro);
  const int loops = std::exchange(loops_, 0);
  guarded(false, [&] { macro.body = body_until(end); });
  loops_ = loops;
  macro_ = outer;
}

void Parser::macro_statement(Body& out, int line) {
  auto macro = std::make_unique<MacroDefinition>();
  macro->name = expect_name();
  macro->parameters = parameters();
  end_of_block();
  macro_body(*macro, "endmacro");
  out.push_back({DefineMacro{std::move(macro)}, line});
}

void Parser::call_statement(Body& out, int line) {
  CallBlock made{std::make_unique<MacroDefinition>(), nullptr};
  made.caller->name = "caller";
  if (at_operator("(")) made.caller->parameters = parameters();
  made.call = expression();
  if (!std::holds_alternative<Call>(made.call->node)) fail_here("expected a call");
  end_of_block();
  macro_body(*made.caller, "endcall");
  out.push_back({std::move(made), line});
}

void Parser::generation_statement(Body& out, int line) {
  CallBlock made{std::make_unique<MacroDefinition>(), nullptr};
  made.caller->name = "generation";
  end_of_block();
  macro_body(*made.caller, "endgeneration");
  out.push_back({std::move(made), line});
}

void Parser::filter_statement(Body& out, int line) {
  FilterBlock made;
  made.filters.push_back(filter_call());
  if (made.filters.back().function == nullptr && !guarded_)
    fail_here(fmt::format("No filter named '{}'.", made.filters.back().name));
  for (FilterCall& more : filter_chain()) made.filters.push_back(std::move(more));
  end_of_block();
  guarded(false, [&] { made.body = body_until("endfilter"); });
  out.push_back({std::move(made), line});
}

void Parser::with_statement(Body& out, int line) {
  With made;
  while (peek().kind != TokenKind::kBlockEnd) {
    if (!made.values.empty()) expect_operator(",");
    Target name = single_target(false);
    expect_operator("=");
    ExprPtr value = expression();
    made.values.emplace_back(std::move(name), std::move(value));
  }
  end_of_block();
  guarded(false, [&] { made.body = body_until("endwith"); });
  out.push_back({std::move(made), line});
}

void Parser::print_statement(Body& out, int line) {
  out.push_back({Output{tuple()}, line});
  end_of_block();
}

void Parser::loop_control(Body& out, int line, LoopControl control) {
  if (loops_ == 0) fail_here("break and continue belong into a loop");
  end_of_block();
  out.push_back({control, line});
}

}  // namespace

Body parse(std::string_view source, const RenderLimits& limits) {
  if (source.size() > limits.source_bytes)
    fail_limit("the chat template has {} bytes; {} are allowed", source.size(),
               limits.source_bytes);
  return Parser(tokenize(source), limits).run();
}

}  // namespace strata::jinja
