#include "text/template/runtime.h"

#include <algorithm>

#include "text/template/error.h"

namespace strata::jinja {

void Runtime::out_of_steps() const {
  fail_limit("the chat template takes more than {} steps", limits_.steps);
}

void Runtime::out_of_stack() const {
  fail_limit("the chat template nests too deeply for this thread's stack");
}

void Runtime::too_deep() const {
  fail_limit("the chat template nests more than {} calls", limits_.call_depth);
}

void Runtime::check_depth(int depth) const {
  if (depth > limits_.value_depth)
    fail_limit("a value of the chat template is nested more than {} deep", limits_.value_depth);
}

Value Runtime::string(Text text, bool markup) {
  work_on(text.view());
  return Value(std::make_shared<const String>(std::move(text), markup, &meter_));
}

Value Runtime::sequence(SequenceKind kind, std::vector<Value> items) {
  work(items.size() / 8 + 1);
  auto made = std::make_shared<const Sequence>(kind, std::move(items), &meter_);
  check_depth(made->depth);
  return Value(std::move(made));
}

Value Runtime::dict(std::vector<std::pair<Value, Value>> entries) {
  work(entries.size() + 1);
  auto made = std::make_shared<const Dict>(std::move(entries), &meter_);
  check_depth(made->depth);
  return Value(std::move(made));
}

Value Runtime::undefined(std::string why) {
  return Value(Undefined{std::make_shared<const std::string>(std::move(why))});
}

Value Runtime::missing_attribute(const Value& owner, std::string_view name) {
  return undefined(fmt::format("'{}' has no attribute '{}'", describe(owner), name));
}

void Runtime::check_room(const Text& out, std::size_t more) const {
  constexpr std::size_t kSpanBytes = 64;  // in a text, and as a span of the output
  const std::size_t held = out.size() + out.span_count() * kSpanBytes;
  if (more > limits_.text_bytes || held > limits_.text_bytes - more)
    fail_limit("the chat template makes a text of more than {} bytes", limits_.text_bytes);
}

void Runtime::append(Text& out, const Text& piece, std::size_t from, std::size_t count) {
  from = std::min(from, piece.size());
  count = std::min(count, piece.size() - from);
  check_room(out, count);
  work(count / 64);
  out.append(piece, from, count);
}

void Runtime::append(Text& out, std::string_view bytes, bool content) {
  check_room(out, bytes.size());
  work(bytes.size() / 64);
  out.append(bytes, content);
}

std::vector<const Value*> bind(const Arguments& arguments, std::string_view function,
                               std::initializer_list<std::string_view> parameters) {
  if (arguments.positional.size() > parameters.size())
    fail("{}() takes at most {} arguments, not {}", function, parameters.size(),
         arguments.positional.size());
  std::vector<const Value*> bound(parameters.size(), nullptr);
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) bound[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::find(parameters.begin(), parameters.end(), name);
    if (found == parameters.end())
      fail("{}() got an unexpected keyword argument '{}'", function, name);
    const Value*& place = bound[static_cast<std::size_t>(found - parameters.begin())];
    if (place != nullptr) fail("{}() got multiple values for argument '{}'", function, name);
    place = &value;
  }
  return bound;
}

}  // namespace strata::jinja
