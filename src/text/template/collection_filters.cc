// Filters that order, pick and regroup the items of their input.
#include <algorithm>
#include <set>

#include "text/template/error.h"
#include "text/template/filters.h"
#include "text/template/methods.h"
#include "text/template/operators.h"

namespace strata::jinja {
namespace {

bool flag(const Value* value) { return value != nullptr && truth(*value); }
Value or_none(const Value* value) { return value != nullptr ? *value : Value(None{}); }

Value to_list(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "list", {});
  return runtime.list(iterate(runtime, input));
}

Value first(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "first", {});
  const std::vector<Value> items = iterate(runtime, input);
  return items.empty() ? runtime.undefined("No first item, sequence was empty.") : items.front();
}

Value last(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "last", {});
  if (input.is(Type::kObject)) fail("'{}' object is not reversible", type_name(input));
  const std::vector<Value> items = iterate(runtime, input);
  return items.empty() ? runtime.undefined("No last item, sequence was empty.") : items.back();
}

Value reversed(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "reverse", {});
  if (input.is(Type::kString)) {
    const Value step(std::int64_t{-1});
    return get_slice(runtime, input, nullptr, nullptr, &step);
  }
  std::vector<Value> items = iterate(runtime, input);
  std::reverse(items.begin(), items.end());
  return generator(runtime, std::move(items));
}

Value items(Runtime& runtime, const Value& input, const Arguments& arguments) {
  bind(arguments, "items", {});
  std::vector<Value> out;
  if (!input.is(Type::kUndefined)) {
    if (!input.is(Type::kDict)) fail("Can only get item pairs from a mapping.");
    for (const auto& [key, value] : input.dict().entries)
      out.push_back(runtime.tuple({key, value}));
  }
  return generator(runtime, std::move(out));
}

struct Keyed {
  std::vector<Value> keys;
  Value item;
};

void sort_keyed(Runtime& runtime, std::vector<Keyed>& items, bool descending) {
  const auto before = [&](const Keyed& a, const Keyed& b) {
    for (std::size_t i = 0; i < a.keys.size(); ++i) {
      if (!equal(runtime, a.keys[i], b.keys[i])) return less(runtime, a.keys[i], b.keys[i]);
    }
    return false;
  };
  std::stable_sort(items.begin(), items.end(), [&](const Keyed& a, const Keyed& b) {
    return descending ? before(b, a) : before(a, b);
  });
}

std::vector<Value> items_of(std::vector<Keyed> keyed) {
  std::vector<Value> out;
  for (Keyed& one : keyed) out.push_back(std::move(one.item));
  return out;
}

// The comma-separated paths of sort's attribute argument.
std::vector<Value> paths_of(Runtime& runtime, const Value& attribute) {
  if (!attribute.is(Type::kString)) return {attribute};
  std::vector<Value> out;
  const std::string_view text = attribute.bytes();
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    out.push_back(runtime.string(std::string(text.substr(start, end - start)), false));
    start = end + 1;
  }
  return out;
}

Value sorted(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "sort", {"reverse", "case_sensitive", "attribute"});
  const std::vector<Value> paths = paths_of(runtime, or_none(args[2]));
  std::vector<Keyed> keyed;
  for (Value& item : iterate(runtime, input)) {
    Keyed one;
    for (const Value& path : paths) {
      one.keys.push_back(
          comparison_key(runtime, attribute_at_path(runtime, item, path), flag(args[1])));
    }
    one.item = std::move(item);
    keyed.push_back(std::move(one));
  }
  sort_keyed(runtime, keyed, flag(args[0]));
  return runtime.list(items_of(std::move(keyed)));
}

Value dictsort(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "dictsort", {"case_sensitive", "by", "reverse"});
  if (input.is(Type::kUndefined)) fail("{}", input.why_undefined());
  if (!input.is(Type::kDict)) fail("'{}' object has no attribute 'items'", type_name(input));
  const std::string by = args[1] != nullptr ? to_text(runtime, *args[1]).bytes() : "key";
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  std::vector<Keyed> keyed;
  for (const auto& [key, value] : input.dict().entries) {
    const Value compared = comparison_key(runtime, by == "key" ? key : value, flag(args[0]));
    keyed.push_back({{compared}, runtime.tuple({key, value})});
  }
  sort_keyed(runtime, keyed, flag(args[2]));
  return runtime.list(items_of(std::move(keyed)));
}

Value unique(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "unique", {"case_sensitive", "attribute"});
  std::set<std::string> seen;
  std::vector<Value> out;
  for (Value& item : iterate(runtime, input)) {
    const Value key =
        comparison_key(runtime, attribute_at_path(runtime, item, or_none(args[1])), flag(args[0]));
    const std::optional<std::string> hashed = hash_key(key);
    if (!hashed) fail("unhashable type: '{}'", type_name(key));
    runtime.work_on(*hashed);
    if (seen.insert(*hashed).second) out.push_back(std::move(item));
  }
  return generator(runtime, std::move(out));
}

template <bool kMost>
Value extreme(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, kMost ? "max" : "min", {"case_sensitive", "attribute"});
  std::optional<Keyed> best;
  for (Value& item : iterate(runtime, input)) {
    Value key =
        comparison_key(runtime, attribute_at_path(runtime, item, or_none(args[1])), flag(args[0]));
    if (best && !(kMost ? less(runtime, best->keys[0], key) : less(runtime, key, best->keys[0])))
      continue;
    best = Keyed{{std::move(key)}, std::move(item)};
  }
  return best ? best->item : runtime.undefined("No aggregated item, sequence was empty.");
}

Value sum(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "sum", {"attribute", "start"});
  Value total = args[1] != nullptr ? *args[1] : Value(std::int64_t{0});
  if (total.is(Type::kString)) fail("sum() can't sum strings");
  for (const Value& item : iterate(runtime, input)) {
    total = arithmetic(runtime, BinaryOp::kAdd, total,
                       attribute_at_path(runtime, item, or_none(args[0])));
  }
  return total;
}

Value grouped(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "groupby", {"attribute", "default", "case_sensitive"});
  if (args[0] == nullptr) fail("groupby needs an attribute");
  const auto read = [&](const Value& item) {
    Value found = attribute_at_path(runtime, item, *args[0]);
    const bool replaces = args[1] != nullptr && found.is(Type::kUndefined);
    return replaces ? *args[1] : found;
  };
  std::vector<Keyed> keyed;
  for (Value& item : iterate(runtime, input))
    keyed.push_back({{comparison_key(runtime, read(item), flag(args[2]))}, std::move(item)});
  sort_keyed(runtime, keyed, false);
  std::vector<Value> groups;
  for (std::size_t start = 0; start < keyed.size();) {
    std::size_t end = start;
    std::vector<Value> members;
    for (; end < keyed.size() && equal(runtime, keyed[start].keys[0], keyed[end].keys[0]); ++end)
      members.push_back(keyed[end].item);
    if (end == start) members.push_back(keyed[end++].item);  // a NaN equals nothing
    const Value key = read(members.front());
    groups.push_back(
        runtime.sequence(SequenceKind::kGroup, {key, runtime.list(std::move(members))}));
    start = end;
  }
  return runtime.list(std::move(groups));
}

Value batches(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "batch", {"linecount", "fill_with"});
  if (args[0] == nullptr) fail("batch needs a size");
  const std::int64_t size = expect_integer(*args[0], "batch");
  if (size < 1 || size > static_cast<std::int64_t>(runtime.limits().range_items))
    fail_limit("batch: a size of {} is refused", size);
  std::vector<Value> out;
  std::vector<Value> row;
  for (Value& item : iterate(runtime, input)) {
    if (static_cast<std::int64_t>(row.size()) == size)
      out.push_back(runtime.list(std::exchange(row, {})));
    row.push_back(std::move(item));
  }
  if (!row.empty()) {
    if (args[1] != nullptr && !args[1]->is(Type::kNone))
      row.resize(static_cast<std::size_t>(size), *args[1]);
    out.push_back(runtime.list(std::move(row)));
  }
  return generator(runtime, std::move(out));
}

Value slices(Runtime& runtime, const Value& input, const Arguments& arguments) {
  const auto args = bind(arguments, "slice", {"slices", "fill_with"});
  if (args[0] == nullptr) fail("slice needs a count");
  const std::int64_t given = expect_integer(*args[0], "slice");
  if (given < 1 || given > static_cast<std::int64_t>(runtime.limits().range_items))
    fail_limit("slice: a count of {} is refused", given);
  const auto count = static_cast<std::size_t>(given);
  const std::vector<Value> all = iterate(runtime, input);
  const std::size_t longer = all.size() % count;
  std::vector<Value> out;
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = at + all.size() / count + (i < longer ? 1 : 0);
    std::vector<Value> part;
    for (; at < end; ++at) part.push_back(all[at]);
    if (args[1] != nullptr && !args[1]->is(Type::kNone) && i >= longer) part.push_back(*args[1]);
    out.push_back(runtime.list(std::move(part)));
  }
  return generator(runtime, std::move(out));
}

}  // namespace

FilterFunction find_collection_filter(std::string_view name) {
  static constexpr std::pair<std::string_view, FilterFunction> kFilters[] = {
      {"batch", batches},    {"dictsort", dictsort}, {"first", first},
      {"groupby", grouped},  {"items", items},       {"last", last},
      {"list", to_list},     {"max", extreme<true>}, {"min", extreme<false>},
      {"reverse", reversed}, {"slice", slices},      {"sort", sorted},
      {"sum", sum},          {"unique", unique},
  };
  return find_named(kFilters, name);
}

}  // namespace strata::jinja
