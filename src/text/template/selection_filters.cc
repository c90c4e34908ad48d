// Filters that apply another filter or a test to every item.
#include "text/template/error.h"
#include "text/template/filters.h"
#include "text/template/methods.h"
#include "text/template/operators.h"

namespace strata::jinja {
namespace {

// The arguments left for the inner filter or test after the first `used` ones.
Arguments rest(const Arguments& arguments, std::size_t used) {
  Arguments out;
  out.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(used),
                        arguments.positional.end());
  out.named = arguments.named;
  return out;
}

Value map_attribute(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "map", {"attribute", "default"});
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, input)) {
    Value found = attribute_at_path(runtime, item, *args[0]);
    const bool replaces = args[1] != nullptr && found.is(Type::kUndefined);
    out.push_back(replaces ? *args[1] : std::move(found));
  }
  return generator(runtime, std::move(out));
}

Value map(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Runtime::Depth depth(runtime);
  if (arguments.positional.empty()) {
    for (const auto& [name, value] : arguments.named) {
      if (name == "attribute") return map_attribute(runtime, input, arguments);
    }
    fail("map requires a filter argument");
  }
  const std::string_view name = expect_string(arguments.positional[0], "map").view();
  const FilterFunction filter = find_filter(name);
  if (filter == nullptr) fail("No filter named '{}'.", name);
  const Arguments inner = rest(arguments, 1);
  std::vector<Value> out;
  for (const Value& item : iterate(runtime, input)) {
    runtime.work(1 + inner.positional.size());
    out.push_back(filter(runtime, item, inner));
  }
  return generator(runtime, std::move(out));
}

template <bool kByAttribute, bool kKeeps>
Value select(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const Runtime::Depth depth(runtime);
  constexpr std::size_t kTestAt = kByAttribute ? 1 : 0;
  if (!truth(input)) return generator(runtime, {});
  if (arguments.positional.size() < kTestAt) fail("Missing parameter for attribute name");
  TestFunction test = nullptr;
  Arguments inner;
  if (arguments.positional.size() > kTestAt) {
    const std::string_view name = expect_string(arguments.positional[kTestAt], "select").view();
    test = find_test(name);
    if (test == nullptr) fail("No test named '{}'.", name);
    inner = rest(arguments, kTestAt + 1);
  }
  std::vector<Value> out;
  for (Value& item : iterate(runtime, input)) {
    runtime.work(1);
    const Value tested =
        kByAttribute ? attribute_at_path(runtime, item, arguments.positional[0]) : item;
    if ((test == nullptr ? truth(tested) : test(runtime, tested, inner)) == kKeeps)
      out.push_back(std::move(item));
  }
  return generator(runtime, std::move(out));
}

}  // namespace

FilterFunction find_selection_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, FilterFunction> kFilters[] = {
      {"map", map},
      {"reject", select<false, false>},
      {"rejectattr", select<true, false>},
      {"select", select<false, true>},
      {"selectattr", select<true, true>},
  };
  return find_named(kFilters, name);
}

}  // namespace strata::jinja
