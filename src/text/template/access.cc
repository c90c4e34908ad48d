// Attributes, items, slices, iteration and calls.
#include <algorithm>
#include <array>
#include <limits>

#include "text/template/error.h"
#include "text/template/operators.h"
#include "text/template/unicode.h"

namespace strata::jinja {
namespace {

// A method looked up but not called yet: `message.content.strip`.
class BoundMethod final : public Object {
 public:
  BoundMethod(Value self, Method method) : self_(std::move(self)), method_(method) {}
  std::string type_name() const override { return "builtin_function_or_method"; }
  bool callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return method_(runtime, self_, arguments);
  }

 private:
  Value self_;
  Method method_;
};

// Methods that would change a value: templates may not.
bool is_refused_method(const Value& value, std::string_view name) {
  constexpr std::array<std::string_view, 8> kOfLists = {"append", "clear", "pop",    "reverse",
                                                        "insert", "sort",  "extend", "remove"};
  constexpr std::array<std::string_view, 5> kOfDicts = {"clear", "pop", "popitem", "setdefault",
                                                        "update"};
  const auto among = [&](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (value.is(Type::kDict)) return among(kOfDicts);
  return value.is(Type::kSequence) && value.sequence().kind == SequenceKind::kList &&
         among(kOfLists);
}

std::optional<Value> own_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (value.is(Type::kUndefined)) fail("{}", value.why_undefined());
  if (value.is(Type::kObject)) return value.object()->attribute(runtime, name);
  if (is_refused_method(value, name))
    return runtime.undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(value)));
  if (value.is(Type::kSequence) && value.sequence().kind == SequenceKind::kGroup) {
    if (name == "grouper") return value.sequence().items[0];
    if (name == "list") return value.sequence().items[1];
  }
  if (const Method method = find_method(value, name); method != nullptr)
    return Value(runtime.create<BoundMethod>(value, method));
  return std::nullopt;
}

Value missing_item(Runtime& runtime, const Value& owner, const Value& key) {
  if (key.is(Type::kString)) return runtime.missing_attribute(owner, key.bytes());
  return runtime.undefined(
      fmt::format("{} has no element {}", describe(owner), repr(runtime, key).view()));
}

Value character(Runtime& runtime, const Value& value, std::int64_t index) {
  const std::string_view text = value.bytes();
  std::size_t at;
  if (index >= 0) {
    runtime.work(std::min<std::size_t>(static_cast<std::size_t>(index), text.size()) / 64);
    at = offset_of(text, static_cast<std::size_t>(index));
  } else {
    at = text.size();
    for (std::int64_t left = index; left < 0; ++left) {
      if (at == 0) return missing_item(runtime, value, Value(index));
      if (left % 64 == 0) runtime.work(1);
      at = previous_code_point(text, at);
    }
  }
  if (at >= text.size()) return missing_item(runtime, value, Value(index));
  return runtime.string(value.text().substr(at, code_point_at(text, at).bytes), value.is_markup());
}

// The item at a key that is no attribute name; nullopt where there is none.
std::optional<Value> own_item(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Type::kDict)) {
    const Value* found = value.dict().find(key);
    return found == nullptr ? std::nullopt : std::optional(*found);
  }
  if (!key.is_integral()) return std::nullopt;
  if (value.is(Type::kString)) return character(runtime, value, key.integer());
  if (!value.is(Type::kSequence) || value.sequence().is_view()) return std::nullopt;
  const auto& items = value.sequence().items;
  const auto size = static_cast<std::int64_t>(items.size());
  const std::int64_t index = key.integer() < 0 ? key.integer() + size : key.integer();
  if (index < 0 || index >= size) return std::nullopt;
  return items[static_cast<std::size_t>(index)];
}

struct SliceBounds {
  std::int64_t start, stop, step, count;
};

// Python's slice.indices().
SliceBounds slice_bounds(std::int64_t size, const Value* start, const Value* stop,
                         const Value* step) {
  const auto given = [](const Value* value) { return value != nullptr && !value->is(Type::kNone); };
  const auto index = [&](const Value* value) {
    if (value->is(Type::kUndefined)) fail("{}", value->why_undefined());
    if (value->is(Type::kBigInt)) return std::numeric_limits<std::int64_t>::max();
    if (!value->is_integral()) fail("slice indices must be integers or None");
    return value->integer();
  };
  SliceBounds out{0, 0, given(step) ? index(step) : 1, 0};
  if (out.step == 0) fail("slice step cannot be zero");
  const std::int64_t low = out.step > 0 ? 0 : -1;
  const std::int64_t high = out.step > 0 ? size : size - 1;
  const auto clamp = [&](const Value* value, std::int64_t fallback) {
    if (!given(value)) return fallback;
    const std::int64_t at = index(value);
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  out.start = clamp(start, out.step > 0 ? low : high);
  out.stop = clamp(stop, out.step > 0 ? high : low);
  if (out.step > 0 && out.start < out.stop) out.count = (out.stop - out.start - 1) / out.step + 1;
  if (out.step < 0 && out.start > out.stop)
    out.count = out.step <= -size ? 1 : (out.start - out.stop - 1) / -out.step + 1;
  return out;
}

Value slice_string(Runtime& runtime, const Value& value, const Value* start, const Value* stop,
                   const Value* step) {
  const std::string_view text = value.bytes();
  runtime.work_on(text);
  const auto size = static_cast<std::int64_t>(count_code_points(text));
  const SliceBounds bounds = slice_bounds(size, start, stop, step);
  if (bounds.count == 0) return runtime.string(Text(), value.is_markup());
  if (bounds.step == 1) {
    const std::size_t from = offset_of(text, static_cast<std::size_t>(bounds.start));
    const std::size_t bytes =
        offset_of(text.substr(from), static_cast<std::size_t>(bounds.stop - bounds.start));
    return runtime.string(value.text().substr(from, bytes), value.is_markup());
  }
  std::vector<std::size_t> offsets;
  for (std::size_t at = 0; at < text.size(); at += code_point_at(text, at).bytes)
    offsets.push_back(at);
  Text out;
  runtime.work(static_cast<std::size_t>(bounds.count));
  for (std::int64_t i = 0; i < bounds.count; ++i) {
    const std::size_t at = offsets[static_cast<std::size_t>(bounds.start + i * bounds.step)];
    runtime.append(out, value.text(), at, code_point_at(text, at).bytes);
  }
  return runtime.string(std::move(out), value.is_markup());
}

}  // namespace

Value get_attribute(Runtime& runtime, const Value& value, std::string_view name) {
  if (std::optional<Value> own = own_attribute(runtime, value, name)) return *std::move(own);
  if (value.is(Type::kDict)) {
    if (const Value* found = value.dict().find(name); found != nullptr) return *found;
  }
  return runtime.missing_attribute(value, name);
}

Value get_item(Runtime& runtime, const Value& value, const Value& key) {
  if (value.is(Type::kUndefined)) fail("{}", value.why_undefined());
  if (std::optional<Value> item = own_item(runtime, value, key)) return *std::move(item);
  if (key.is(Type::kString)) {
    if (std::optional<Value> own = own_attribute(runtime, value, key.bytes()))
      return *std::move(own);
  }
  return missing_item(runtime, value, key);
}

Value get_slice(Runtime& runtime, const Value& value, const Value* start, const Value* stop,
                const Value* step) {
  if (value.is(Type::kUndefined)) fail("{}", value.why_undefined());
  if (value.is(Type::kString)) return slice_string(runtime, value, start, stop, step);
  if (!value.is(Type::kSequence) || value.sequence().is_view())
    return runtime.undefined(fmt::format("{} cannot be sliced", describe(value)));
  const auto& items = value.sequence().items;
  const SliceBounds bounds =
      slice_bounds(static_cast<std::int64_t>(items.size()), start, stop, step);
  runtime.work(static_cast<std::size_t>(bounds.count));
  std::vector<Value> out;
  for (std::int64_t i = 0; i < bounds.count; ++i)
    out.push_back(items[static_cast<std::size_t>(bounds.start + i * bounds.step)]);
  return runtime.sequence(value.sequence().kind, std::move(out));
}

std::vector<Value> iterate(Runtime& runtime, const Value& value) {
  std::vector<Value> out;
  switch (value.type()) {
    case Type::kUndefined: return out;
    case Type::kString:
      for (std::size_t at = 0; at < value.text().size();) {
        const std::size_t bytes = code_point_at(value.bytes(), at).bytes;
        out.push_back(runtime.string(value.text().substr(at, bytes)));
        at += bytes;
      }
      return out;
    case Type::kSequence:
      runtime.work(value.sequence().items.size());
      return value.sequence().items;
    case Type::kDict:
      runtime.work(value.dict().entries.size());
      for (const auto& [key, item] : value.dict().entries) out.push_back(key);
      return out;
    case Type::kObject:
      if (auto items = value.object()->take_items()) return *std::move(items);
      [[fallthrough]];
    default: fail("'{}' object is not iterable", type_name(value));
  }
}

std::int64_t length(Runtime& runtime, const Value& value) {
  switch (value.type()) {
    case Type::kUndefined: return 0;
    case Type::kString:
      runtime.work_on(value.bytes());
      return static_cast<std::int64_t>(count_code_points(value.bytes()));
    case Type::kSequence: return static_cast<std::int64_t>(value.sequence().items.size());
    case Type::kDict: return static_cast<std::int64_t>(value.dict().entries.size());
    default: fail("object of type '{}' has no len()", type_name(value));
  }
}

Value call(Runtime& runtime, const Value& callee, const Arguments& arguments) {
  if (callee.is(Type::kUndefined)) fail("{}", callee.why_undefined());
  if (!callee.is(Type::kObject) || !callee.object()->callable())
    fail("'{}' object is not callable", type_name(callee));
  return callee.object()->call(runtime, arguments);
}

}  // namespace strata::jinja
