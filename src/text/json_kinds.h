// Which kinds of values a JSON schema allows, as far as its keywords say.
#pragma once

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <cstddef>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace strata {

// Bits.
struct JsonKinds {
  static constexpr unsigned kString = 1, kInteger = 2, kFraction = 4, kTrue = 8, kFalse = 16,
                            kNull = 32, kObject = 64, kArray = 128, kAny = 255;
  static constexpr unsigned kNumber = kInteger | kFraction, kBoolean = kTrue | kFalse;
};

// Reads type, enum, const, anyOf, oneOf, allOf and $ref into `document`, of which schemas are
// parts; without these, the types that keywords speak of. kAny where nothing says more, or more
// than a limit of steps, which all calls share. Every part is looked through once, whatever leads
// to it.
class KindReader {
 public:
  static constexpr std::size_t kMostSteps = std::size_t{1} << 18;

  // Keeps a reference to `document`. REQUIRES: it and the schemas asked for stay where they are.
  explicit KindReader(const boost::json::object& document) : document_(document) {}

  unsigned kinds(const boost::json::value& schema);
  // Of the member `key` of the objects that `document` describes, or of members that it does not
  // name.
  unsigned member_kinds(std::optional<std::string_view> key);
  // Schemas, with their members and items, that were looked at.
  std::size_t steps() const { return steps_; }

 private:
  using Object = boost::json::object;
  using Value = boost::json::value;

  unsigned kinds(const Value& schema, int nesting);
  unsigned kinds(const Object& fields, int nesting);
  unsigned read(const Object& fields, int nesting);
  // 0: nothing is said of it. Without a key, what is said of members without a name.
  unsigned member(const Object& fields, std::optional<std::string_view> key, int nesting);
  const Object* target(const Value& ref) const;
  // Whether the limits allow to look at what has so many parts.
  bool may_go(int nesting, std::size_t parts);

  const Object& document_;
  std::size_t steps_ = 0;
  // Of schemas that are done. What is under way leads to itself; what has met such, or a limit,
  // depends on where it was begun, so it is not kept.
  std::unordered_map<const Object*, unsigned> known_;
  std::unordered_map<const Object*, int> under_way_;  // with their nesting
  int outermost_ = kNone;                             // of those met, by nesting
  static constexpr int kNone = 1000;
};

// Of a JSON text; numbers are integers where they are written as such.
unsigned json_kind_of(std::string_view json);

}  // namespace strata
