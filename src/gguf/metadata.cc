#include "gguf/metadata.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "base/printable.h"

namespace strata {
namespace {

static_assert(std::endian::native == std::endian::little, "GGUF numbers are copied as they are");

constexpr std::array<std::string_view, 13> kTypeNames = {
    "UINT8", "INT8",   "UINT16", "INT16",  "UINT32", "INT32",  "FLOAT32",
    "BOOL",  "STRING", "ARRAY",  "UINT64", "INT64",  "FLOAT64"};

std::string describe(const MetadataEntry& entry) {
  if (const auto* array = std::get_if<MetadataArray>(&entry.value))
    return fmt::format("ARRAY of {}", to_string(array->element_type));
  return std::string(to_string(entry.type));
}

Status wrong_type(std::string_view key, const MetadataEntry& entry, std::string_view expected) {
  return corrupt("key `{}` has type {}, where {} is expected", printable(key), describe(entry),
                 expected);
}

Status wrong_elements(const MetadataArray& array, std::string_view expected) {
  return corrupt("the array's elements have type {}, where {} is expected",
                 to_string(array.element_type), expected);
}

template <typename T, typename Out>
std::vector<Out> widen(const std::string& numbers) {
  std::vector<Out> out(numbers.size() / sizeof(T));
  for (std::size_t i = 0; i < out.size(); ++i) {
    T value;
    std::memcpy(&value, numbers.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<Out>(value);
  }
  return out;
}

// Integer elements of every width; nullopt where the elements are not integers.
template <typename Out>
std::optional<std::vector<Out>> widen_integers(const MetadataArray& array) {
  switch (array.element_type) {
    case ValueType::kUint8: return widen<std::uint8_t, Out>(array.numbers);
    case ValueType::kInt8: return widen<std::int8_t, Out>(array.numbers);
    case ValueType::kUint16: return widen<std::uint16_t, Out>(array.numbers);
    case ValueType::kInt16: return widen<std::int16_t, Out>(array.numbers);
    case ValueType::kUint32: return widen<std::uint32_t, Out>(array.numbers);
    case ValueType::kInt32: return widen<std::int32_t, Out>(array.numbers);
    case ValueType::kUint64: return widen<std::uint64_t, Out>(array.numbers);
    case ValueType::kInt64: return widen<std::int64_t, Out>(array.numbers);
    default: return std::nullopt;
  }
}

template <typename T>
Result<std::optional<T>> to_optional(Result<T> result) {
  if (!result.ok()) return result.status();
  return std::optional<T>(std::move(result).value());
}

}  // namespace

std::string_view to_string(ValueType type) {
  const auto index = static_cast<std::size_t>(type);
  return index < kTypeNames.size() ? kTypeNames[index] : "unknown type";
}

std::size_t value_bytes(ValueType type) {
  switch (type) {
    case ValueType::kUint8:
    case ValueType::kInt8:
    case ValueType::kBool: return 1;
    case ValueType::kUint16:
    case ValueType::kInt16: return 2;
    case ValueType::kUint32:
    case ValueType::kInt32:
    case ValueType::kFloat32: return 4;
    case ValueType::kUint64:
    case ValueType::kInt64:
    case ValueType::kFloat64: return 8;
    default: return 0;
  }
}

Result<std::vector<std::int64_t>> MetadataArray::as_integers() const {
  auto integers = widen_integers<std::int64_t>(*this);
  if (!integers) return wrong_elements(*this, "an integer type");
  if (element_type == ValueType::kUint64)
    for (const std::int64_t value : *integers)
      if (value < 0) return corrupt("the array holds an integer above 2^63 - 1");
  return std::move(*integers);
}

Result<std::vector<double>> MetadataArray::as_floats() const {
  if (element_type == ValueType::kFloat32) return widen<float, double>(numbers);
  if (element_type == ValueType::kFloat64) return widen<double, double>(numbers);
  auto integers = widen_integers<double>(*this);
  if (!integers) return wrong_elements(*this, "a float or integer type");
  return std::move(*integers);
}

Result<std::vector<bool>> MetadataArray::as_bools() const {
  if (element_type != ValueType::kBool) return wrong_elements(*this, "BOOL");
  std::vector<bool> out(numbers.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = numbers[i] != 0;
  return out;
}

Result<std::span<const std::string_view>> MetadataArray::as_strings() const {
  if (element_type != ValueType::kString) return wrong_elements(*this, "STRING");
  return std::span<const std::string_view>(strings);
}

const MetadataEntry* Metadata::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

Result<const MetadataEntry*> Metadata::require(std::string_view key) const {
  const MetadataEntry* entry = find(key);
  if (entry == nullptr) return not_found("key `{}` is missing", printable(key));
  return entry;
}

Result<std::string_view> Metadata::get_string(std::string_view key) const {
  STRATA_ASSIGN(const MetadataEntry* entry, require(key));
  if (const auto* text = std::get_if<std::string_view>(&entry->value)) return *text;
  return wrong_type(key, *entry, "STRING");
}

Result<std::int64_t> Metadata::get_integer(std::string_view key) const {
  STRATA_ASSIGN(const MetadataEntry* entry, require(key));
  if (const auto* number = std::get_if<std::int64_t>(&entry->value)) return *number;
  const auto* number = std::get_if<std::uint64_t>(&entry->value);
  if (number == nullptr) return wrong_type(key, *entry, "an integer type");
  if (*number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return corrupt("key `{}` is {}, above 2^63 - 1", printable(key), *number);
  return static_cast<std::int64_t>(*number);
}

Result<double> Metadata::get_float(std::string_view key) const {
  STRATA_ASSIGN(const MetadataEntry* entry, require(key));
  if (const auto* number = std::get_if<double>(&entry->value)) return *number;
  if (const auto* number = std::get_if<std::int64_t>(&entry->value))
    return static_cast<double>(*number);
  if (const auto* number = std::get_if<std::uint64_t>(&entry->value))
    return static_cast<double>(*number);
  return wrong_type(key, *entry, "a float or integer type");
}

Result<bool> Metadata::get_bool(std::string_view key) const {
  STRATA_ASSIGN(const MetadataEntry* entry, require(key));
  if (const auto* flag = std::get_if<bool>(&entry->value)) return *flag;
  return wrong_type(key, *entry, "BOOL");
}

Result<const MetadataArray*> Metadata::get_array(std::string_view key) const {
  STRATA_ASSIGN(const MetadataEntry* entry, require(key));
  if (const auto* array = std::get_if<MetadataArray>(&entry->value)) return array;
  return wrong_type(key, *entry, "ARRAY");
}

Result<std::optional<std::string_view>> Metadata::optional_string(std::string_view key) const {
  if (!contains(key)) return std::optional<std::string_view>();
  return to_optional(get_string(key));
}

Result<std::optional<std::int64_t>> Metadata::optional_integer(std::string_view key) const {
  if (!contains(key)) return std::optional<std::int64_t>();
  return to_optional(get_integer(key));
}

Result<std::optional<double>> Metadata::optional_float(std::string_view key) const {
  if (!contains(key)) return std::optional<double>();
  return to_optional(get_float(key));
}

Result<std::optional<bool>> Metadata::optional_bool(std::string_view key) const {
  if (!contains(key)) return std::optional<bool>();
  return to_optional(get_bool(key));
}

Status Metadata::insert(std::string_view key, MetadataEntry&& entry) {
  const auto [place, inserted] = entries_.try_emplace(key, std::move(entry));
  if (!inserted) return corrupt("key `{}` is there twice", printable(key));
  order_.push_back(place->first);
  return {};
}

}  // namespace strata
