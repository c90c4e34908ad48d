#include "text/template/template.h"

#include <algorithm>
#include <array>
#include <new>

#include "text/template/error.h"
#include "text/template/interpreter.h"
#include "text/template/json.h"
#include "text/template/parser.h"

namespace strata::jinja {
namespace {

// Templates spell control tokens with these, as in '<|' + message.role + '|>'. Any other role is
// content like the rest of the message.
constexpr std::array<std::string_view, 9> kRoles = {"system",    "developer",   "user",
                                                    "assistant", "tool",        "function",
                                                    "ipython",   "observation", "model"};

Value message_from_json(Runtime& runtime, const boost::json::value& message) {
  const boost::json::object* fields = message.if_object();
  if (fields == nullptr) return from_json(runtime, message, true);
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& field : *fields) {
    const boost::json::string* role = field.key() == "role" ? field.value().if_string() : nullptr;
    const bool known = role != nullptr && std::find(kRoles.begin(), kRoles.end(),
                                                    std::string_view(*role)) != kRoles.end();
    entries.emplace_back(runtime.string(std::string(field.key()), true),
                         from_json(runtime, field.value(), !known));
  }
  return runtime.dict(std::move(entries));
}

Value input_from_json(Runtime& runtime, std::string_view name, const boost::json::value& value) {
  const boost::json::array* messages = name == "messages" ? value.if_array() : nullptr;
  if (messages == nullptr) return from_json(runtime, value, true);
  std::vector<Value> items;
  for (const auto& message : *messages) items.push_back(message_from_json(runtime, message));
  return runtime.list(std::move(items));
}

Status to_status(const TemplateError& error, int line) {
  if (error.from_template) return Status(error.code, error.message);
  if (line <= 0) return Status(error.code, error.message);
  return make_error(error.code, "chat template, line {}: {}", line, error.message);
}

}  // namespace

struct Template::Parsed {
  Body body;
};

Result<Template> Template::parse(std::string_view source, const RenderLimits& limits) {
  try {
    return Template(std::make_shared<const Parsed>(Parsed{jinja::parse(source, limits)}));
  } catch (const TemplateError& error) {
    return to_status(error, error.line);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory to parse the chat template");
  }
}

Result<std::vector<RenderedSpan>> Template::render(const RenderInputs& inputs,
                                                   const RenderLimits& limits,
                                                   std::string* refused) const {
  Runtime runtime(limits, inputs.now);
  int line = 0;
  std::string_view taken;
  try {
    std::vector<std::pair<std::string_view, Value>> variables;
    for (const auto& entry : inputs.content) {
      taken = entry.key();
      variables.emplace_back(entry.key(), input_from_json(runtime, entry.key(), entry.value()));
    }
    taken = {};
    for (const auto& entry : inputs.scaffolding)
      variables.emplace_back(entry.key(), from_json(runtime, entry.value(), false));
    Interpreter interpreter(runtime, std::move(variables));
    std::vector<RenderedSpan> spans;
    try {
      const Text text = interpreter.render(parsed_->body);
      text.for_each_span([&](std::string_view bytes, bool content) {
        spans.push_back({std::string(bytes), content});
      });
    } catch (const TemplateError&) {
      line = interpreter.line();
      throw;
    }
    return spans;
  } catch (const TemplateError& error) {
    if (refused != nullptr) *refused = taken;
    return to_status(error, line);
  } catch (const std::bad_alloc&) {
    return resource_exhausted("not enough memory to render the chat template");
  }
}

std::string join(const std::vector<RenderedSpan>& spans) {
  std::string out;
  for (const RenderedSpan& span : spans) out += span.text;
  return out;
}

}  // namespace strata::jinja
