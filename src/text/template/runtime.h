// One render's budgets and the owner of its Objects. Every value a render makes is made here.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/stack_room.h"
#include "text/template/limits.h"
#include "text/template/value.h"

namespace strata::jinja {

using TimePoint = std::chrono::sys_time<std::chrono::microseconds>;  // local time, no zone

// Not thread-safe. All limits throw TemplateError.
class Runtime {
 public:
  Runtime(const RenderLimits& limits, std::optional<TimePoint> now)
      : limits_(limits), now_(now), meter_(limits.memory_bytes) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  const RenderLimits& limits() const { return limits_; }
  std::optional<TimePoint> now() const { return now_; }

  // Pays for `steps` units of work: of text, 64 bytes copied or 16 looked at are one. Whatever
  // recurses does so on every level, for the stack is looked at here.
  void work(std::size_t steps) {
    if (!stack_.is_left()) out_of_stack();
    if (steps > limits_.steps - used_steps_) out_of_steps();
    used_steps_ += steps;
  }
  void work_on(std::string_view text) { work(text.size() / 16 + 1); }

  Value string(Text text, bool markup = false);
  Value string(std::string bytes, bool content) { return string(Text(std::move(bytes), content)); }
  Value list(std::vector<Value> items) { return sequence(SequenceKind::kList, std::move(items)); }
  Value tuple(std::vector<Value> items) { return sequence(SequenceKind::kTuple, std::move(items)); }
  Value sequence(SequenceKind kind, std::vector<Value> items);
  Value dict(std::vector<std::pair<Value, Value>> entries);  // later entries replace earlier ones
  Value undefined(std::string why);
  Value missing_attribute(const Value& owner, std::string_view name);

  // `out` += `piece`, within the limit on one text.
  void append(Text& out, const Text& piece) { append(out, piece, 0, piece.size()); }
  void append(Text& out, const Text& piece, std::size_t from, std::size_t count);
  void append(Text& out, std::string_view bytes, bool content);

  // One call or nested node, for as long as it lives.
  class Depth {
   public:
    explicit Depth(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.depth_ > runtime_.limits_.call_depth) {
        --runtime_.depth_;
        runtime_.too_deep();
      }
    }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    ~Depth() { --runtime_.depth_; }

   private:
    Runtime& runtime_;
  };

  // Owned until the render ends.
  template <typename T, typename... Args>
  T* create(Args&&... args) {
    meter_.take(sizeof(T) + kObjectOverhead);
    auto made = std::make_unique<T>(std::forward<Args>(args)...);
    T* raw = made.get();
    objects_.push_back(std::move(made));
    return raw;
  }
  MemoryMeter& meter() { return meter_; }

 private:
  static constexpr std::size_t kObjectOverhead = 64;
  [[noreturn]] void out_of_steps() const;
  [[noreturn]] void out_of_stack() const;
  [[noreturn]] void too_deep() const;
  void check_room(const Text& out, std::size_t more) const;
  void check_depth(int depth) const;

  const RenderLimits limits_;
  const std::optional<TimePoint> now_;
  std::uint64_t used_steps_ = 0;
  int depth_ = 0;
  const StackRoom stack_;
  MemoryMeter meter_;  // before the objects, which give back to it
  std::deque<std::unique_ptr<Object>> objects_;
};

// A generator or any other one-pass result: its items can be taken once.
class Generator final : public Object {
 public:
  explicit Generator(std::vector<Value> items) : items_(std::move(items)) {}
  std::string type_name() const override { return "generator"; }
  std::optional<std::vector<Value>> take_items() override { return std::exchange(items_, {}); }

 private:
  std::vector<Value> items_;
};

inline Value generator(Runtime& runtime, std::vector<Value> items) {
  runtime.meter().take(items.size() * sizeof(Value));
  return Value(runtime.create<Generator>(std::move(items)));
}

// Sorts a call's arguments into the parameters of `function`, in their order; null where absent.
// Too many, unknown or doubled ones throw.
std::vector<const Value*> bind(const Arguments& arguments, std::string_view function,
                               std::initializer_list<std::string_view> parameters);

}  // namespace strata::jinja
