// The global functions of templates.
#include "text/template/functions.h"

#include "text/template/builtins.h"
#include "text/template/error.h"
#include "text/template/operators.h"
#include "text/template/strftime.h"

namespace strata::jinja {
namespace {

class Function final : public Object {
 public:
  using Body = Value (*)(Runtime& runtime, const Arguments& arguments);
  explicit Function(Body body) : body_(body) {}
  std::string type_name() const override { return "function"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return body_(runtime, arguments);
  }

 private:
  Body body_;
};

// cycler('a', 'b'): next() goes round, reset() to the start.
class Cycler final : public Object {
 public:
  explicit Cycler(std::vector<Value> items) : items_(std::move(items)) {}
  std::string type_name() const override { return "jinja2.utils.Cycler"; }
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override {
    if (name == "current") return items_[at_];
    if (name == "next") return Value(runtime.create<Step>(*this, true));
    if (name == "reset") return Value(runtime.create<Step>(*this, false));
    return std::nullopt;
  }

 private:
  class Step final : public Object {
   public:
    Step(Cycler& cycler, bool forward) : cycler_(cycler), forward_(forward) {}
    std::string type_name() const override { return "method"; }
    bool callable() const override { return true; }
    Value call(Runtime&, const Arguments& arguments) override {
      bind(arguments, "cycler", {});
      if (!forward_) {
        cycler_.at_ = 0;
        return Value(None{});
      }
      const Value current = cycler_.items_[cycler_.at_];
      cycler_.at_ = (cycler_.at_ + 1) % cycler_.items_.size();
      return current;
    }

   private:
    Cycler& cycler_;
    bool forward_;
  };

  std::vector<Value> items_;
  std::size_t at_ = 0;
};

// joiner(', '): nothing on the first call, the separator from then on.
class Joiner final : public Object {
 public:
  explicit Joiner(Value separator) : separator_(std::move(separator)) {}
  std::string type_name() const override { return "jinja2.utils.Joiner"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    bind(arguments, "joiner", {});
    return std::exchange(used_, true) ? separator_ : runtime.string(Text());
  }

 private:
  Value separator_;
  bool used_ = false;
};

Value range(Runtime& runtime, const Arguments& arguments) {
  const auto args = bind(arguments, "range", {"start", "stop", "step"});
  if (args[0] == nullptr) fail("range expected at least 1 argument, got 0");
  for (const Value* value : args) {
    if (value != nullptr && value->is(Type::kUndefined)) fail("{}", value->why_undefined());
  }
  const std::int64_t first = args[1] == nullptr ? 0 : expect_integer(*args[0], "range");
  const std::int64_t stop = expect_integer(args[1] == nullptr ? *args[0] : *args[1], "range");
  const std::int64_t step = args[2] == nullptr ? 1 : expect_integer(*args[2], "range");
  if (step == 0) fail("range() arg 3 must not be zero");
  std::vector<Value> out;
  std::int64_t at = first;
  while (step > 0 ? at < stop : at > stop) {
    if (out.size() >= runtime.limits().range_items)
      fail_limit("Range too big. The sandbox blocks ranges larger than {}.",
                 runtime.limits().range_items);
    out.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return runtime.sequence(SequenceKind::kRange, std::move(out));
}

// The pairs that dict() and namespace() take: of a dict or of a list of pairs.
std::vector<std::pair<Value, Value>> pairs_of(Runtime& runtime, const Value& source) {
  if (source.is(Type::kDict)) return source.dict().entries;
  std::vector<std::pair<Value, Value>> out;
  for (const Value& item : iterate(runtime, source)) {
    const std::vector<Value> pair = iterate(runtime, item);
    if (pair.size() != 2) fail("dictionary update sequence element has length {}", pair.size());
    out.emplace_back(pair[0], pair[1]);
  }
  return out;
}

Value make_dict(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.size() > 1) fail("dict expected at most 1 argument");
  std::vector<std::pair<Value, Value>> entries;
  if (!arguments.positional.empty()) entries = pairs_of(runtime, arguments.positional[0]);
  for (const auto& [name, value] : arguments.named)
    entries.emplace_back(runtime.string(name, false), value);
  return runtime.dict(std::move(entries));
}

Value make_namespace(Runtime& runtime, const Arguments& arguments) {
  auto* made = runtime.create<Namespace>();
  for (const Value& source : arguments.positional) {
    for (auto& [name, value] : pairs_of(runtime, source))
      made->set(runtime, expect_string(name, "namespace").view(), std::move(value));
  }
  for (const auto& [name, value] : arguments.named) made->set(runtime, name, value);
  return Value(made);
}

Value make_cycler(Runtime& runtime, const Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  return Value(runtime.create<Cycler>(arguments.positional));
}

Value make_joiner(Runtime& runtime, const Arguments& arguments) {
  const auto args = bind(arguments, "joiner", {"sep"});
  return Value(runtime.create<Joiner>(args[0] != nullptr ? *args[0] : runtime.string(", ", false)));
}

Value raise_exception(Runtime& runtime, const Arguments& arguments) {
  const auto args = bind(arguments, "raise_exception", {"message"});
  const Text message = args[0] != nullptr ? to_text(runtime, *args[0]) : Text();
  throw TemplateError{.message = message.bytes(), .from_template = true};
}

Value strftime_now(Runtime& runtime, const Arguments& arguments) {
  const auto args = bind(arguments, "strftime_now", {"format"});
  if (args[0] == nullptr) fail("strftime_now() needs a format");
  const Text& format = expect_string(*args[0], "strftime_now");
  runtime.work_on(format.view());
  return runtime.string(strftime(*runtime.now(), format.view()), false);
}

}  // namespace

std::optional<Value> Namespace::attribute(Runtime& runtime, std::string_view name) {
  runtime.work(attributes_.size() / 16);
  for (const auto& [known, value] : attributes_) {
    if (known == name) return value;
  }
  return std::nullopt;
}

void Namespace::set(Runtime& runtime, std::string_view name, Value value) {
  runtime.work(attributes_.size() / 16);
  for (auto& [known, old] : attributes_) {
    if (known != name) continue;
    old = std::move(value);
    return;
  }
  runtime.meter().take(sizeof(attributes_[0]) + name.size());
  attributes_.emplace_back(std::string(name), std::move(value));
}

std::vector<std::pair<std::string_view, Value>> make_globals(Runtime& runtime) {
  const auto function = [&](Function::Body body) { return Value(runtime.create<Function>(body)); };
  std::vector<std::pair<std::string_view, Value>> out = {
      {"range", function(range)},
      {"dict", function(make_dict)},
      {"namespace", function(make_namespace)},
      {"cycler", function(make_cycler)},
      {"joiner", function(make_joiner)},
      {"raise_exception", function(raise_exception)},
  };
  if (runtime.now()) out.emplace_back("strftime_now", function(strftime_now));
  return out;
}

}  // namespace strata::jinja
