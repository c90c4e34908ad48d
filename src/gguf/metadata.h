// GGUF metadata: typed key-value pairs, checked when they are read out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/status.h"

namespace strata {

// GGUF's value types, by their numbers in the file.
enum class ValueType : std::uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
std::string_view to_string(ValueType type);
std::size_t value_bytes(ValueType type);  // of one number or bool; 0 for strings and arrays

// An array of one element type. Integers of every width are kept as they are in the file and
// widened on access, so no element is ever read as another type than the file declares.
class MetadataArray {
 public:
  ValueType element_type = ValueType::kUint8;
  std::size_t count = 0;
  std::string numbers;                    // count * element size, little-endian; empty for strings
  std::vector<std::string_view> strings;  // into the file's header bytes, which the Metadata owns
  std::vector<MetadataArray> arrays;      // nested arrays

  // Each fails with kCorrupt when the element type is of another family.
  Result<std::vector<std::int64_t>> as_integers() const;
  Result<std::vector<double>> as_floats() const;  // float or integer elements
  Result<std::vector<bool>> as_bools() const;
  Result<std::span<const std::string_view>> as_strings() const;
};

using MetadataValue =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string_view, MetadataArray>;

struct MetadataEntry {
  ValueType type;  // as declared in the file
  MetadataValue value;
};

// Key-value pairs in file order. Lookup errors name the key, the type found and the one expected.
// "optional" getters return nullopt for an absent key and an error for a wrongly typed one.
class Metadata {
 public:
  const MetadataEntry* find(std::string_view key) const;
  bool contains(std::string_view key) const { return find(key) != nullptr; }
  std::span<const std::string_view> keys() const { return order_; }

  Result<std::string_view> get_string(std::string_view key) const;
  Result<std::int64_t> get_integer(std::string_view key) const;  // any integer type
  Result<double> get_float(std::string_view key) const;          // any float or integer type
  Result<bool> get_bool(std::string_view key) const;
  Result<const MetadataArray*> get_array(std::string_view key) const;

  Result<std::optional<std::string_view>> optional_string(std::string_view key) const;
  Result<std::optional<std::int64_t>> optional_integer(std::string_view key) const;
  Result<std::optional<double>> optional_float(std::string_view key) const;
  Result<std::optional<bool>> optional_bool(std::string_view key) const;

  // For the reader. Fails with kCorrupt on a key that is already there.
  Status insert(std::string_view key, MetadataEntry&& entry);

 private:
  Result<const MetadataEntry*> require(std::string_view key) const;

  std::vector<std::string_view> order_;
  std::map<std::string_view, MetadataEntry> entries_;
};

}  // namespace strata
