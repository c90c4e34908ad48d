// The methods of dict, list and tuple that change nothing.
#include "text/template/error.h"
#include "text/template/methods.h"
#include "text/template/operators.h"

namespace strata::jinja {
namespace {

Value dict_get(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "get", {"key", "default"});
  if (args[0] == nullptr) fail("get() needs a key");
  if (!args[0]->is(Type::kUndefined) && !hash_key(*args[0]))
    fail("unhashable type: '{}'", type_name(*args[0]));
  runtime.work(1);
  if (const Value* found = self.dict().find(*args[0]); found != nullptr) return *found;
  return args[1] != nullptr ? *args[1] : Value(None{});
}

Value dict_keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind(arguments, "keys", {});
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) out.push_back(key);
  return runtime.sequence(SequenceKind::kKeysView, std::move(out));
}

Value dict_values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind(arguments, "values", {});
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) out.push_back(value);
  return runtime.sequence(SequenceKind::kValuesView, std::move(out));
}

Value dict_items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  bind(arguments, "items", {});
  std::vector<Value> out;
  for (const auto& [key, value] : self.dict().entries) out.push_back(runtime.tuple({key, value}));
  return runtime.sequence(SequenceKind::kItemsView, std::move(out));
}

Value copy(Runtime&, const Value& self, const Arguments& arguments) {
  bind(arguments, "copy", {});
  return self;
}

Value sequence_count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "count", {"value"});
  if (args[0] == nullptr) fail("count() needs a value");
  std::int64_t total = 0;
  for (const Value& item : self.sequence().items) total += equal(runtime, item, *args[0]) ? 1 : 0;
  return Value(total);
}

Value sequence_index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto args = bind(arguments, "index", {"value"});
  if (args[0] == nullptr) fail("index() needs a value");
  const auto& items = self.sequence().items;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (equal(runtime, items[i], *args[0])) return Value(static_cast<std::int64_t>(i));
  }
  fail("{} is not in list", repr(runtime, *args[0]).view());
}

Method find_dict_method(std::string_view name) {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"copy", copy},      {"get", dict_get},       {"items", dict_items},
      {"keys", dict_keys}, {"values", dict_values},
  };
  return find_named(kMethods, name);
}

Method find_sequence_method(std::string_view name, bool is_list) {
  static constexpr std::pair<std::string_view, Method> kMethods[] = {
      {"count", sequence_count},
      {"index", sequence_index},
  };
  return is_list && name == "copy" ? Method{copy} : find_named(kMethods, name);
}

}  // namespace

Method find_method(const Value& self, std::string_view name) {
  switch (self.type()) {
    case Type::kString: return find_string_method(name);
    case Type::kDict: return find_dict_method(name);
    case Type::kSequence:
      if (self.sequence().is_view()) return nullptr;
      return find_sequence_method(name, self.sequence().kind == SequenceKind::kList);
    default: return nullptr;
  }
}

}  // namespace strata::jinja
