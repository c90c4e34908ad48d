#include "gguf/header_reader.h"

#include <algorithm>
#include <cstring>

#include "base/checked.h"
#include "base/printable.h"

namespace strata {
namespace {

// The fewest bytes that one of each takes in a file.
constexpr Bytes kLeastString = 8;
constexpr Bytes kLeastArray = 4 + 8;
constexpr Bytes kLeastPair = kLeastString + 1 + 4 + 1;
constexpr Bytes kLeastTensor = kLeastString + 1 + 4 + 8 + 4 + 8;

bool is_gguf(std::string_view magic) { return magic == "GGUF"; }

}  // namespace

Result<std::string_view> HeaderReader::take(Bytes count) {
  if (count > file_bytes_ - position_)
    return corrupt(
        "{} bytes are needed at byte {}, but the file ends at byte {}: it is damaged or was cut "
        "short; download it again",
        count, position_, file_bytes_);
  if (count > bytes_.size() - position_) {
    wanted_ = position_ + count;
    return corrupt("the header goes on past the {} bytes at hand", bytes_.size());
  }
  const auto* start = reinterpret_cast<const char*>(bytes_.data()) + position_;
  position_ += count;
  return std::string_view(start, count);
}

template <typename T>
Result<T> HeaderReader::number() {
  STRATA_ASSIGN(const std::string_view raw, take(sizeof(T)));
  T value;
  std::memcpy(&value, raw.data(), sizeof(T));
  return value;
}

Result<std::string_view> HeaderReader::text(std::size_t limit) {
  STRATA_ASSIGN(const auto length, number<std::uint64_t>());
  if (length > limit) return corrupt("a name of {} bytes exceeds the limit of {}", length, limit);
  return take(length);
}

Status HeaderReader::check_count(Bytes count, Bytes least_bytes, std::string_view what) const {
  const Bytes left = file_bytes_ - position_;
  if (count <= left / least_bytes) return {};
  return corrupt("{} {} are declared, but only {} bytes follow: the file is damaged or cut short",
                 count, what, left);
}

std::size_t HeaderReader::room_for(Bytes count, Bytes least_bytes) const {
  return std::min<Bytes>(count, (bytes_.size() - position_) / least_bytes);
}

Status HeaderReader::check_version(std::uint32_t version) const {
  if (version == 2 || version == 3) return {};
  if (version == 1)
    return unsupported("GGUF version 1 is obsolete; convert the model again to version 3");
  if (version != 0 && (version & 0xffff) == 0)
    return unsupported("the file is big-endian; Strata reads little-endian GGUF only");
  return unsupported("GGUF version {} is not known; Strata reads versions 2 and 3", version);
}

Result<GgufHeader> HeaderReader::read() {
  if (file_bytes_ < 4) return not_a_gguf(bytes_, file_bytes_);
  STRATA_ASSIGN(const std::string_view magic, take(4));
  if (!is_gguf(magic)) return not_a_gguf(bytes_, file_bytes_);
  GgufHeader header;
  STRATA_ASSIGN(header.version, number<std::uint32_t>());
  STRATA_TRY(check_version(header.version));
  STRATA_ASSIGN(const auto tensors, number<std::uint64_t>());
  STRATA_ASSIGN(const auto pairs, number<std::uint64_t>());
  STRATA_TRY(check_count(pairs, kLeastPair, "metadata keys"));
  STRATA_TRY(read_pairs(pairs, header.metadata));
  STRATA_TRY(check_count(tensors, kLeastTensor, "tensors"));
  STRATA_TRY(read_tensors(tensors, header.tensors));
  header.end = position_;
  return header;
}

Status HeaderReader::read_pairs(Bytes count, Metadata& metadata) {
  for (Bytes i = 0; i < count; ++i) {
    const auto where = [&] { return fmt::format("metadata key {} of {}", i + 1, count); };
    auto key = text(kMaxNameBytes);
    if (!key.ok()) return key.status().with_context(where());
    if (key->empty()) return corrupt("{} is empty", where());
    auto read = entry();
    if (!read.ok()) return read.status().with_context(fmt::format("key `{}`", printable(*key)));
    STRATA_TRY(metadata.insert(*key, std::move(read).value()));
  }
  return {};
}

Result<MetadataEntry> HeaderReader::entry() {
  STRATA_ASSIGN(const auto raw_type, number<std::uint32_t>());
  const auto type = static_cast<ValueType>(raw_type);
  const auto integer = [&](auto read, auto widest) -> Result<MetadataEntry> {
    if (!read.ok()) return read.status();
    return MetadataEntry{type, static_cast<decltype(widest)>(*read)};
  };
  switch (type) {
    case ValueType::kUint8: return integer(number<std::uint8_t>(), std::uint64_t{});
    case ValueType::kUint16: return integer(number<std::uint16_t>(), std::uint64_t{});
    case ValueType::kUint32: return integer(number<std::uint32_t>(), std::uint64_t{});
    case ValueType::kUint64: return integer(number<std::uint64_t>(), std::uint64_t{});
    case ValueType::kInt8: return integer(number<std::int8_t>(), std::int64_t{});
    case ValueType::kInt16: return integer(number<std::int16_t>(), std::int64_t{});
    case ValueType::kInt32: return integer(number<std::int32_t>(), std::int64_t{});
    case ValueType::kInt64: return integer(number<std::int64_t>(), std::int64_t{});
    case ValueType::kFloat32: return integer(number<float>(), double{});
    case ValueType::kFloat64: return integer(number<double>(), double{});
    case ValueType::kBool: {
      STRATA_ASSIGN(const auto flag, number<std::uint8_t>());
      if (flag > 1) return corrupt("a BOOL is {}, where 0 or 1 is expected", flag);
      return MetadataEntry{type, flag == 1};
    }
    case ValueType::kString: {
      STRATA_ASSIGN(const std::string_view string, text(kMaxHeaderBytes));
      return MetadataEntry{type, string};
    }
    case ValueType::kArray: {
      STRATA_ASSIGN(MetadataArray elements, array(1));
      return MetadataEntry{type, std::move(elements)};
    }
  }
  return corrupt("value type {} is not one of GGUF's", raw_type);
}

Result<MetadataArray> HeaderReader::array(int depth) {
  if (depth > kMaxArrayDepth) return corrupt("arrays are nested deeper than {}", kMaxArrayDepth);
  STRATA_ASSIGN(const auto raw_type, number<std::uint32_t>());
  STRATA_ASSIGN(const auto count, number<std::uint64_t>());
  MetadataArray array;
  array.element_type = static_cast<ValueType>(raw_type);
  array.count = count;
  if (array.element_type == ValueType::kString) {
    STRATA_TRY(check_count(count, kLeastString, "strings"));
    array.strings.reserve(room_for(count, kLeastString));
    for (Bytes i = 0; i < count; ++i) {
      STRATA_ASSIGN(const std::string_view string, text(kMaxHeaderBytes));
      array.strings.push_back(string);
    }
    return array;
  }
  if (array.element_type == ValueType::kArray) {
    STRATA_TRY(check_count(count, kLeastArray, "arrays"));
    for (Bytes i = 0; i < count; ++i) {
      STRATA_ASSIGN(MetadataArray inner, this->array(depth + 1));
      array.arrays.push_back(std::move(inner));
    }
    return array;
  }
  const Bytes size = value_bytes(array.element_type);
  if (size == 0) return corrupt("element type {} is not one of GGUF's", raw_type);
  STRATA_TRY(check_count(count, size, "array elements"));
  STRATA_ASSIGN(const std::string_view raw, take(count * size));
  if (array.element_type == ValueType::kBool &&
      std::ranges::any_of(raw, [](char flag) { return flag != 0 && flag != 1; }))
    return corrupt("the array's BOOLs are not all 0 or 1");
  array.numbers = raw;
  return array;
}

Status HeaderReader::read_tensors(Bytes count, std::vector<TensorInfo>& tensors) {
  tensors.reserve(room_for(count, kLeastTensor));
  for (Bytes i = 0; i < count; ++i) {
    const auto where = [&] { return fmt::format("tensor {} of {}", i + 1, count); };
    auto name = text(kMaxNameBytes);
    if (!name.ok()) return name.status().with_context(where());
    if (name->empty()) return corrupt("{} has an empty name", where());
    TensorInfo tensor{};
    tensor.name = *name;
    if (Status status = read_geometry(tensor); !status.ok())
      return status.with_context(fmt::format("tensor `{}`", printable(*name)));
    tensors.push_back(std::move(tensor));
  }
  return {};
}

Status HeaderReader::read_geometry(TensorInfo& tensor) {
  STRATA_ASSIGN(tensor.dimensions, number<std::uint32_t>());
  if (tensor.dimensions < 1 || tensor.dimensions > tensor.shape.size())
    return corrupt("it has {} dimensions, where 1 to 4 are allowed", tensor.dimensions);
  tensor.shape.fill(1);
  std::optional<std::uint64_t> elements = 1;
  for (std::uint32_t d = 0; d < tensor.dimensions; ++d) {
    STRATA_ASSIGN(tensor.shape[d], number<std::uint64_t>());
    if (tensor.shape[d] == 0) return corrupt("dimension {} is 0", d);
    if (elements) elements = checked_mul(*elements, tensor.shape[d]);
  }
  STRATA_ASSIGN(const auto type, number<std::uint32_t>());
  STRATA_ASSIGN(tensor.offset, number<std::uint64_t>());
  const auto info = format_info(type);
  if (const auto foreign = foreign_type(type))
    return unsupported("its type {} is {}, {}", type, foreign->name, foreign->origin);
  if (!info)
    return unsupported(
        "its type {} is not a GGUF tensor type; the file was made by another or a newer program",
        type);
  tensor.format = info->id;
  if (tensor.shape[0] % info->block_elements != 0)
    return corrupt("its rows of {} elements are no whole {} blocks of {}", tensor.shape[0],
                   info->name, info->block_elements);
  // A size is kept below 2^63, so that sums of two cannot wrap.
  const auto bytes = elements
                         ? checked_mul<Bytes>(*elements / info->block_elements, info->block_bytes)
                         : std::nullopt;
  if (!bytes || *bytes > static_cast<Bytes>(INT64_MAX))
    return corrupt("tensor size overflow: shape [{}] in {} needs more than 2^63 bytes",
                   fmt::join(tensor.shape, ", "), info->name);
  tensor.bytes = *bytes;
  return {};
}

Status not_a_gguf(std::span<const std::uint8_t> start, Bytes file_bytes) {
  const std::string_view text(reinterpret_cast<const char*>(start.data()),
                              std::min<std::size_t>(start.size(), 512));
  const auto because = [](std::string_view what) {
    return corrupt("is not a GGUF file: {}", what);
  };
  if (file_bytes == 0) return because("it is empty; download it again");
  if (text.starts_with("version https://git-lfs"))
    return because("it is a Git LFS pointer to the real file; fetch that with `git lfs pull`");
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != text.npos && text[first] == '<')
    return because("it is a web page, perhaps a login or error page; download the file itself");
  if (text.size() > 8 && text[8] == '{')
    return because("it looks like safetensors; convert the model to GGUF first");
  if (first != text.npos && text[first] == '{')
    return because("it is JSON text, perhaps an error message of the download");
  if (text.starts_with("PK\x03\x04"))
    return because("it is a zip archive, perhaps of PyTorch weights; convert them to GGUF first");
  if (text.starts_with("\x1f\x8b") || text.starts_with("\x28\xb5\x2f\xfd"))
    return because("it is compressed; unpack it first");
  for (const std::string_view old : {"lmgg", "fmgg", "tjgg", "algg"})
    if (text.starts_with(old))
      return because("it is of GGUF's predecessor GGML; convert the model again");
  if (text.starts_with("FUGG")) return because("its bytes are in big-endian order");
  return because(fmt::format("it starts with \"{}\"", printable(text.substr(0, 8))));
}

}  // namespace strata
