// Macros and loops as templates see them.
#include "text/template/error.h"
#include "text/template/interpreter.h"
#include "text/template/operators.h"

namespace strata::jinja {
namespace {

// loop.cycle and loop.changed.
class LoopMethod final : public Object {
 public:
  LoopMethod(Loop& loop, bool cycles) : loop_(loop), cycles_(cycles) {}
  std::string type_name() const override { return "method"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    if (!cycles_) return Value(loop_.changed(runtime, arguments.positional));
    if (arguments.positional.empty()) fail("no items for cycling given");
    return arguments.positional[loop_.index % arguments.positional.size()];
  }

 private:
  Loop& loop_;
  bool cycles_;
};

}  // namespace

std::optional<Value> Macro::attribute(Runtime& runtime, std::string_view name) {
  if (name != "name") return std::nullopt;
  return runtime.string(definition.name, false);
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  if (sequence_.is(Type::kUndefined)) return std::nullopt;
  const auto at = static_cast<std::int64_t>(index);
  const auto size = static_cast<std::int64_t>(items().size());
  if (name == "index") return Value(at + 1);
  if (name == "index0") return Value(at);
  if (name == "revindex") return Value(size - at);
  if (name == "revindex0") return Value(size - at - 1);
  if (name == "first") return Value(at == 0);
  if (name == "last") return Value(at + 1 == size);
  if (name == "length") return Value(size);
  if (name == "depth") return Value(std::int64_t{depth} + 1);
  if (name == "depth0") return Value(std::int64_t{depth});
  if (name == "previtem")
    return at == 0 ? runtime.undefined("there is no previous item") : items()[index - 1];
  if (name == "nextitem")
    return at + 1 == size ? runtime.undefined("there is no next item") : items()[index + 1];
  if (name == "cycle") return Value(runtime.create<LoopMethod>(*this, true));
  if (name == "changed") return Value(runtime.create<LoopMethod>(*this, false));
  return std::nullopt;
}

Value Loop::call(Runtime&, const Arguments& arguments) {
  const auto args = bind(arguments, "loop", {"iterable"});
  if (!definition.recursive)
    fail("The loop must have the 'recursive' marker to be called recursively.");
  if (args[0] == nullptr) fail("loop() needs the items to go on with");
  return interpreter_.call_loop(*this, *args[0]);
}

bool Loop::changed(Runtime& runtime, const std::vector<Value>& values) {
  bool same = last_values_ && last_values_->size() == values.size();
  for (std::size_t i = 0; same && i < values.size(); ++i)
    same = equal(runtime, (*last_values_)[i], values[i]);
  if (!same) last_values_ = values;
  return !same;
}

}  // namespace strata::jinja
