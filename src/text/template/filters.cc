#include "text/template/filters.h"

#include <algorithm>

#include "text/template/methods_text.h"
#include "text/template/operators.h"

namespace strata::jinja {

FilterFunction find_filter(std::string_view name) {
  for (const auto find :
       {find_text_filter, find_value_filter, find_collection_filter, find_selection_filter}) {
    if (const FilterFunction found = find(name); found != nullptr) return found;
  }
  return nullptr;
}

Value attribute_at_path(Runtime& runtime, const Value& item, const Value& path) {
  if (path.is(Type::kNone)) return item;
  if (!path.is(Type::kString)) return get_item(runtime, item, path);
  Value found = item;
  const std::string_view text = path.bytes();
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find('.', start), text.size());
    const std::string_view part = text.substr(start, end - start);
    const bool numeric = !part.empty() && part.size() < 10 &&
                         part.find_first_not_of("0123456789") == std::string_view::npos;
    found = get_item(runtime, found,
                     numeric ? Value(std::int64_t{std::stol(std::string(part))})
                             : runtime.string(std::string(part), false));
    start = end + 1;
  }
  return found;
}

Value comparison_key(Runtime& runtime, Value value, bool case_sensitive) {
  if (case_sensitive || !value.is(Type::kString)) return value;
  return runtime.string(lower(runtime, value.text()));
}

}  // namespace strata::jinja
