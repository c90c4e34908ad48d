#include "text/template/value.h"

#include <algorithm>
#include <cmath>

#include "text/template/error.h"

namespace strata::jinja {
namespace {

constexpr std::size_t kLongestTupleKey = 4096;
constexpr std::size_t kEntryBytes = 2 * sizeof(Value) + 96;  // with its place in the index

std::string string_key(std::string_view key) { return std::string("s").append(key); }

std::optional<std::string> number_key(const Value& key) {
  if (key.is_integral()) return fmt::format("n{}", key.integer());
  if (key.is(Type::kBigInt)) return fmt::format("n{}", key.big());
  const double real = key.real();
  if (std::nearbyint(real) == real && std::abs(real) < 9e18)
    return fmt::format("n{}", static_cast<std::int64_t>(real));
  return fmt::format("f{}", real);
}

std::optional<std::string> tuple_key(const Sequence& tuple) {
  std::string out = "t";
  for (const Value& item : tuple.items) {
    const std::optional<std::string> part = hash_key(item);
    if (!part) return std::nullopt;
    out += fmt::format("{}:{}", part->size(), *part);
    if (out.size() > kLongestTupleKey) fail_limit("a tuple is too long to be a key");
  }
  return out;
}

std::string_view sequence_name(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::kList: return "list";
    case SequenceKind::kTuple: return "tuple";
    case SequenceKind::kGroup: return "_GroupTuple";
    case SequenceKind::kRange: return "range";
    case SequenceKind::kKeysView: return "dict_keys";
    case SequenceKind::kValuesView: return "dict_values";
    case SequenceKind::kItemsView: return "dict_items";
  }
  return "list";
}

}  // namespace

void MemoryMeter::take(std::size_t bytes) {
  if (bytes > limit_ || used_ > limit_ - bytes)
    fail_limit("the chat template needs more than {} bytes for its values", limit_);
  used_ += bytes;
}

std::string Value::why_undefined() const {
  const auto& why = std::get<Undefined>(data_).why;
  return why != nullptr ? *why : "an undefined value is used";
}

int Value::depth() const {
  if (is(Type::kSequence)) return sequence().depth;
  return is(Type::kDict) ? dict().depth : 0;
}

bool Value::same_as(const Value& other) const {
  if (type() != other.type()) return false;
  switch (type()) {
    case Type::kUndefined: return std::get<Undefined>(data_).why == std::get<0>(other.data_).why;
    case Type::kNone: return true;
    case Type::kBool: return boolean() == other.boolean();
    case Type::kInt: return integer() == other.integer();
    case Type::kBigInt: return big() == other.big();
    case Type::kFloat: return real() == other.real();
    case Type::kString: return &string() == &other.string();
    case Type::kSequence: return &sequence() == &other.sequence();
    case Type::kDict: return &dict() == &other.dict();
    case Type::kObject: return object() == other.object();
  }
  return false;
}

std::optional<std::string> hash_key(const Value& key) {
  switch (key.type()) {
    case Type::kString: return string_key(key.bytes());
    case Type::kBool:
    case Type::kInt:
    case Type::kBigInt:
    case Type::kFloat: return number_key(key);
    case Type::kNone: return "z";
    case Type::kObject: return fmt::format("o{}", static_cast<const void*>(key.object()));
    case Type::kSequence:
      return key.sequence().is_tuple() ? tuple_key(key.sequence()) : std::nullopt;
    case Type::kUndefined:
    case Type::kDict: return std::nullopt;
  }
  return std::nullopt;
}

Sequence::Sequence(SequenceKind sequence_kind, std::vector<Value> values, MemoryMeter* meter)
    : kind(sequence_kind),
      items(std::move(values)),
      depth(1),
      charge(meter, sizeof(Sequence) + items.size() * sizeof(Value)) {
  for (const Value& item : items) depth = std::max(depth, item.depth() + 1);
}

Dict::Dict(std::vector<std::pair<Value, Value>> pairs, MemoryMeter* meter)
    : charge(meter, sizeof(Dict) + pairs.size() * kEntryBytes) {
  entries.reserve(pairs.size());
  for (auto& pair : pairs) set(std::move(pair.first), std::move(pair.second));
}

std::optional<std::size_t> Dict::position(std::string_view key) const {
  if (!index_.empty()) {
    const auto found = index_.find(string_key(key));
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].first.is(Type::kString) && entries[i].first.bytes() == key) return i;
  }
  return std::nullopt;
}

std::optional<std::size_t> Dict::position(const Value& key) const {
  if (key.is(Type::kString)) return position(key.bytes());
  const std::optional<std::string> wanted = hash_key(key);
  if (!wanted) return std::nullopt;
  if (!index_.empty()) {
    const auto found = index_.find(*wanted);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (!entries[i].first.is(Type::kString) && hash_key(entries[i].first) == wanted) return i;
  }
  return std::nullopt;
}

void Dict::set(Value key, Value value) {
  std::optional<std::string> hashed = hash_key(key);
  if (!hashed) fail("unhashable type: '{}'", type_name(key));
  depth = std::max({depth, key.depth() + 1, value.depth() + 1});
  if (const std::optional<std::size_t> known = position(key)) {
    entries[*known].second = std::move(value);
    return;
  }
  entries.emplace_back(std::move(key), std::move(value));
  if (!index_.empty()) {
    index_.emplace(std::move(*hashed), entries.size() - 1);
  } else if (entries.size() > kIndexedFrom) {
    for (std::size_t i = 0; i < entries.size(); ++i) index_.emplace(*hash_key(entries[i].first), i);
  }
}

std::string type_name(const Value& value) {
  switch (value.type()) {
    case Type::kUndefined: return "Undefined";
    case Type::kNone: return "NoneType";
    case Type::kBool: return "bool";
    case Type::kInt:
    case Type::kBigInt: return "int";
    case Type::kFloat: return "float";
    case Type::kString: return value.is_markup() ? "Markup" : "str";
    case Type::kSequence: return std::string(sequence_name(value.sequence().kind));
    case Type::kDict: return "dict";
    case Type::kObject: return value.object()->type_name();
  }
  return "object";
}

std::string describe(const Value& value) {
  return value.is(Type::kNone) ? "None" : type_name(value) + " object";
}

std::optional<Value> Object::attribute(Runtime&, std::string_view) { return std::nullopt; }

Value Object::call(Runtime&, const Arguments&) { fail("'{}' object is not callable", type_name()); }

}  // namespace strata::jinja
