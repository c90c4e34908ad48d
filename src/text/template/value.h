// The values of a template, after Python's: immutable once shared, so that they form no cycles.
// What changes or refers back (namespaces, macros, loops) is an Object, owned by the Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "text/template/text.h"

namespace strata::jinja {

class Object;
class Value;
struct Dict;
struct Sequence;

// Counts the bytes of the values alive in one render.
class MemoryMeter {
 public:
  explicit MemoryMeter(std::size_t limit) : limit_(limit) {}
  void take(std::size_t bytes);  // throws TemplateError beyond the limit
  void give(std::size_t bytes) { used_ -= bytes; }

 private:
  std::size_t used_ = 0;
  std::size_t limit_;
};

// A value's share of the meter, given back when the value dies. No meter: not counted.
class Charge {
 public:
  Charge() = default;
  Charge(MemoryMeter* meter, std::size_t bytes) : meter_(meter), bytes_(bytes) {
    if (meter_ != nullptr) meter_->take(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;
  ~Charge() {
    if (meter_ != nullptr) meter_->give(bytes_);
  }

 private:
  MemoryMeter* meter_ = nullptr;
  std::size_t bytes_ = 0;
};

struct String {
  String(Text value, bool is_markup, MemoryMeter* meter)
      : text(std::move(value)),
        markup(is_markup),
        charge(meter, sizeof(String) + text.size() + text.span_count() * 16) {}

  Text text;
  bool markup;  // passed through |safe or |escape: joins escape what they add to it
  Charge charge;
};

// A name that is not there, and the sentence to fail with where it is used.
struct Undefined {
  std::shared_ptr<const std::string> why;
};
struct None {};
// An integer that no std::int64_t holds: 2^63 to 2^64 - 1, where JSON's end. What is computed of it
// is a float, where Python's integers go on; shown, compared and in remainders it is exact.
struct BigInt {
  std::uint64_t value;
};

enum class Type {  // in the order of Value's alternatives
  kUndefined,
  kNone,
  kBool,
  kInt,
  kBigInt,
  kFloat,
  kString,
  kSequence,
  kDict,
  kObject,
};

class Value {
 public:
  Value() = default;  // undefined, without a reason
  explicit Value(Undefined undefined) : data_(std::move(undefined)) {}
  explicit Value(None none) : data_(none) {}
  explicit Value(bool value) : data_(value) {}
  explicit Value(std::int64_t value) : data_(value) {}
  explicit Value(BigInt value) : data_(value) {}
  explicit Value(double value) : data_(value) {}
  explicit Value(std::shared_ptr<const String> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<const Sequence> value) : data_(std::move(value)) {}
  explicit Value(std::shared_ptr<const Dict> value) : data_(std::move(value)) {}
  explicit Value(Object* value) : data_(value) {}

  Type type() const { return static_cast<Type>(data_.index()); }
  bool is(Type type) const { return data_.index() == static_cast<std::size_t>(type); }
  bool is_number() const { return is_integral() || is(Type::kBigInt) || is(Type::kFloat); }
  bool is_integral() const { return is(Type::kInt) || is(Type::kBool); }  // of 64 bits

  // REQUIRES, of each: is() of the type it reads.
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const {  // of an int or a bool
    return is(Type::kBool) ? std::int64_t{boolean()} : std::get<std::int64_t>(data_);
  }
  std::uint64_t big() const { return std::get<BigInt>(data_).value; }
  double real() const {  // of any number
    if (is(Type::kBigInt)) return static_cast<double>(big());
    return is(Type::kFloat) ? std::get<double>(data_) : static_cast<double>(integer());
  }
  const String& string() const { return *std::get<std::shared_ptr<const String>>(data_); }
  const Text& text() const { return string().text; }
  std::string_view bytes() const { return text().view(); }
  const Sequence& sequence() const { return *std::get<std::shared_ptr<const Sequence>>(data_); }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(data_); }
  Object* object() const { return std::get<Object*>(data_); }

  std::string why_undefined() const;
  int depth() const;  // 0 for what holds no values
  bool is_markup() const { return is(Type::kString) && string().markup; }
  bool same_as(const Value& other) const;  // Python's `is`

 private:
  std::variant<Undefined, None, bool, std::int64_t, BigInt, double, std::shared_ptr<const String>,
               std::shared_ptr<const Sequence>, std::shared_ptr<const Dict>, Object*>
      data_;
};

enum class SequenceKind { kList, kTuple, kRange, kGroup, kKeysView, kValuesView, kItemsView };

struct Sequence {
  Sequence(SequenceKind sequence_kind, std::vector<Value> values, MemoryMeter* meter);

  SequenceKind kind;
  std::vector<Value> items;
  int depth;
  Charge charge;

  bool is_tuple() const { return kind == SequenceKind::kTuple || kind == SequenceKind::kGroup; }
  bool is_view() const { return kind >= SequenceKind::kKeysView; }
};

// Ordered by first insertion. Keys are what Python can hash: strings, numbers, none, tuples.
struct Dict {
  Dict(std::vector<std::pair<Value, Value>> pairs, MemoryMeter* meter);

  std::vector<std::pair<Value, Value>> entries;
  int depth = 1;
  Charge charge;

  const Value* find(std::string_view key) const { return at(position(key)); }
  const Value* find(const Value& key) const { return at(position(key)); }

 private:
  const Value* at(std::optional<std::size_t> position) const {
    return position ? &entries[*position].second : nullptr;
  }
  std::optional<std::size_t> position(std::string_view key) const;
  std::optional<std::size_t> position(const Value& key) const;
  void set(Value key, Value value);  // throws TemplateError for a key that cannot be hashed

  static constexpr std::size_t kIndexedFrom = 8;  // fewer entries are searched one by one
  std::unordered_map<std::string, std::size_t> index_;
};

// Equal for keys that Python calls equal; nullopt for what cannot be a key.
std::optional<std::string> hash_key(const Value& key);

// As Python names types in its messages: "str", "list", "NoneType", ...
std::string type_name(const Value& value);
// As Jinja describes the owner of a missing attribute: "dict object", "None", ...
std::string describe(const Value& value);

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

class Runtime;

// What lives as long as the render: namespaces, macros, loops, generators, bound methods.
class Object {
 public:
  virtual ~Object() = default;
  virtual std::string type_name() const = 0;
  virtual std::optional<Value> attribute(Runtime& runtime, std::string_view name);
  virtual bool callable() const { return false; }
  virtual Value call(Runtime& runtime, const Arguments& arguments);
  virtual std::optional<std::vector<Value>> take_items() { return std::nullopt; }  // if iterable
};

}  // namespace strata::jinja
