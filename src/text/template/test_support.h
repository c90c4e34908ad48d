// What the tests and the fuzzer of templates share.
#pragma once

#include <string>
#include <string_view>

#include "text/template/template.h"

namespace strata::testing {

// Inputs of every shape that templates meet: parts, tools, calls, numbers, nesting.
inline jinja::RenderInputs sample_inputs() {
  using boost::json::array;
  using boost::json::object;
  jinja::RenderInputs inputs;
  const object call = {
      {"id", "call00001"},
      {"type", "function"},
      {"function", object{{"name", "get_weather"}, {"arguments", object{{"city", "Zürich"}}}}}};
  inputs.content = {
      {"messages",
       array{object{{"role", "system"}, {"content", "Be kind. <|im_end|>"}},
             object{{"role", "user"},
                    {"content", array{object{{"type", "text"}, {"text", "part one. "}}}}},
             object{{"role", "assistant"}, {"content", ""}, {"tool_calls", array{call}}},
             object{{"role", "tool"}, {"content", "{\"temp\": 7}"}}}},
      {"tools", array{object{{"type", "function"}, {"function", object{{"name", "f"}}}}}},
      {"add_generation_prompt", true},
      {"text", "Hello, Wörld 🦙 \n\t end "},
      {"n", 7},
      {"x", -2.5},
      {"nums", array{3, 1, 2}},
      {"d", object{{"a", 1}, {"b", array{1, nullptr, "z"}}, {"items", "shadow"}}}};
  inputs.scaffolding = {{"bos_token", "<s>"}, {"eos_token", "</s>"}};
  inputs.now = jinja::parse_time("2026-03-14T15:09:26");
  return inputs;
}

// Small enough that a hostile template ends within milliseconds.
inline jinja::RenderLimits small_limits() {
  jinja::RenderLimits limits;
  limits.steps = 100'000;
  limits.text_bytes = 1 << 20;
  limits.memory_bytes = 16 << 20;
  return limits;
}

// Parses and renders; what comes out of it does not matter, only that it comes.
inline bool try_render(std::string_view source, const jinja::RenderInputs& inputs) {
  const auto parsed = jinja::Template::parse(source, small_limits());
  return parsed.ok() && parsed->render(inputs, small_limits()).ok();
}

}  // namespace strata::testing
