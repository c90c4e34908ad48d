// Writes GGUF files (version 3, little-endian) from metadata and tensors.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/format_id.h"
#include "base/status.h"
#include "base/units.h"
#include "gguf/metadata.h"

namespace strata {

class File;

template <typename T>
concept GgufNumber = std::same_as<T, std::uint8_t> || std::same_as<T, std::int8_t> ||
    std::same_as<T, std::uint16_t> || std::same_as<T, std::int16_t> ||
    std::same_as<T, std::uint32_t> || std::same_as<T, std::int32_t> ||
    std::same_as<T, std::uint64_t> || std::same_as<T, std::int64_t> || std::same_as<T, float> ||
    std::same_as<T, double> || std::same_as<T, bool>;

// Takes a piece of a tensor's bytes; an error ends the writing.
using ByteSink = std::function<Status(std::span<const std::uint8_t>)>;
// Hands all of a tensor's bytes to the sink, in order and in pieces of any size.
using TensorSource = std::function<Status(const ByteSink& sink)>;

// Collects what the file shall hold, in file order, then writes it. A mistake made while collecting
// (a name given twice, a shape the format does not allow) is kept and returned by the write.
class GgufWriter {
 public:
  // The alignment of tensor data must be a power of two up to 1 MiB. The writer itself adds
  // `general.alignment` where it is not the default.
  explicit GgufWriter(std::uint32_t alignment = 32);

  template <GgufNumber T>
  void add(std::string_view key, T value) {
    begin_pair(key, type_of<T>());
    put(value);
  }
  void add(std::string_view key, std::string_view text);
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }

  template <GgufNumber T>
  void add_array(std::string_view key, std::span<const T> values) {
    begin_array(key, type_of<T>(), values.size());
    for (const T value : values) put(value);
  }
  void add_array(std::string_view key, std::span<const std::string> texts);

  // As another file has it, nested arrays included.
  void add(std::string_view key, const MetadataEntry& entry);

  // The row length is shape[0]. `data` must stay until the file is written.
  void add_tensor(std::string_view name, FormatId format, std::span<const std::uint64_t> shape,
                  std::span<const std::uint8_t> data);
  void add_tensor(std::string_view name, FormatId format, std::span<const std::uint64_t> shape,
                  TensorSource source);

  // Writes beside `path` and renames at the end: whatever fails, `path` is left as it was. Refuses
  // to replace what is no regular file, anything at the place beside, and more than the disk holds.
  Status write(const std::string& path) const;
  Status write(const ByteSink& sink) const;

 private:
  struct Tensor {
    std::string name;
    TensorSource source;
    Bytes bytes;
  };

  template <GgufNumber T>
  static constexpr ValueType type_of() {
    if constexpr (std::same_as<T, bool>) return ValueType::kBool;
    if constexpr (std::same_as<T, std::uint8_t>) return ValueType::kUint8;
    if constexpr (std::same_as<T, std::int8_t>) return ValueType::kInt8;
    if constexpr (std::same_as<T, std::uint16_t>) return ValueType::kUint16;
    if constexpr (std::same_as<T, std::int16_t>) return ValueType::kInt16;
    if constexpr (std::same_as<T, std::uint32_t>) return ValueType::kUint32;
    if constexpr (std::same_as<T, std::int32_t>) return ValueType::kInt32;
    if constexpr (std::same_as<T, std::uint64_t>) return ValueType::kUint64;
    if constexpr (std::same_as<T, std::int64_t>) return ValueType::kInt64;
    if constexpr (std::same_as<T, float>) return ValueType::kFloat32;
    return ValueType::kFloat64;
  }

  template <typename T>
  static void append(std::string& out, T value) {
    out.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  template <typename T>
  void put(T value) {
    append(pairs_, value);
  }
  void put_text(std::string_view text);
  void put_elements(const MetadataArray& array);
  void begin_pair(std::string_view key, ValueType type);
  void begin_array(std::string_view key, ValueType element_type, std::size_t count);
  void fail(Status status);
  std::string start() const;  // of the file, up to the metadata
  Bytes header_bytes() const;
  Status write_data(const ByteSink& sink) const;
  Status check_space(const File& file) const;

  std::uint32_t alignment_;
  std::uint64_t pair_count_ = 0;
  std::string pairs_;         // the metadata as the file will have it
  std::string tensor_infos_;  // likewise
  std::set<std::string, std::less<>> keys_;
  std::set<std::string, std::less<>> tensor_names_;
  std::vector<Tensor> tensors_;
  Bytes data_bytes_ = 0;
  Status status_;
};

}  // namespace strata
