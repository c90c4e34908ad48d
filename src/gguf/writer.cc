#include "gguf/writer.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/checked.h"
#include "base/disk_space.h"
#include "base/file.h"
#include "base/memory_ledger.h"
#include "base/printable.h"

namespace strata {
namespace {

constexpr std::string_view kAlignmentKey = "general.alignment";
constexpr std::uint32_t kUsualAlignment = 32;

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

Result<Bytes> tensor_bytes(FormatId format, std::span<const std::uint64_t> shape) {
  const auto info = format_info(format);
  if (!info) return invalid_argument("its format is not one of GGUF's");
  if (shape.empty() || shape.size() > 4)
    return invalid_argument("it has {} dimensions, where 1 to 4 are allowed", shape.size());
  if (shape[0] % info->block_elements != 0)
    return invalid_argument("its rows of {} elements are no whole {} blocks of {}", shape[0],
                            info->name, info->block_elements);
  std::optional<Bytes> bytes = info->block_bytes;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return invalid_argument("dimension {} is 0", d);
    if (bytes) bytes = checked_mul(*bytes, d == 0 ? shape[0] / info->block_elements : shape[d]);
  }
  if (!bytes) return invalid_argument("its size overflows");
  return *bytes;
}

Status put_zeros(const ByteSink& sink, Bytes count) {
  return count == 0 ? Status() : sink(std::vector<std::uint8_t>(count));
}

}  // namespace

GgufWriter::GgufWriter(std::uint32_t alignment) : alignment_(alignment) {
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kMiB) {
    alignment_ = kUsualAlignment;
    fail(invalid_argument("alignment {} is no power of two up to 1 MiB", alignment));
  }
  if (alignment_ != kUsualAlignment) add(kAlignmentKey, alignment_);
  keys_.emplace(kAlignmentKey);
}

void GgufWriter::fail(Status status) {
  if (status_.ok()) status_ = std::move(status);
}

void GgufWriter::begin_pair(std::string_view key, ValueType type) {
  if (key.empty()) fail(invalid_argument("a key is empty"));
  if (!keys_.emplace(key).second) fail(invalid_argument("key `{}` is given twice", printable(key)));
  ++pair_count_;
  put_text(key);
  put(type);
}

void GgufWriter::begin_array(std::string_view key, ValueType element_type, std::size_t count) {
  begin_pair(key, ValueType::kArray);
  put(element_type);
  put(static_cast<std::uint64_t>(count));
}

void GgufWriter::put_text(std::string_view text) {
  put(static_cast<std::uint64_t>(text.size()));
  pairs_ += text;
}

void GgufWriter::add(std::string_view key, std::string_view text) {
  begin_pair(key, ValueType::kString);
  put_text(text);
}

void GgufWriter::add_array(std::string_view key, std::span<const std::string> texts) {
  begin_array(key, ValueType::kString, texts.size());
  for (const std::string& text : texts) put_text(text);
}

void GgufWriter::put_elements(const MetadataArray& array) {
  put(array.element_type);
  put(static_cast<std::uint64_t>(array.count));
  pairs_ += array.numbers;
  for (const std::string_view text : array.strings) put_text(text);
  for (const MetadataArray& inner : array.arrays) put_elements(inner);
}

void GgufWriter::add(std::string_view key, const MetadataEntry& entry) {
  begin_pair(key, entry.type);
  if (const auto* text = std::get_if<std::string_view>(&entry.value)) return put_text(*text);
  if (const auto* array = std::get_if<MetadataArray>(&entry.value)) return put_elements(*array);
  if (const auto* flag = std::get_if<bool>(&entry.value)) return put(*flag);
  if (const auto* real = std::get_if<double>(&entry.value))
    return entry.type == ValueType::kFloat32 ? put(static_cast<float>(*real)) : put(*real);
  // Little-endian: the low bytes of the widened integer are the narrow one.
  const auto* natural = std::get_if<std::uint64_t>(&entry.value);
  const std::uint64_t bits = natural != nullptr
                                 ? *natural
                                 : static_cast<std::uint64_t>(std::get<std::int64_t>(entry.value));
  pairs_.append(reinterpret_cast<const char*>(&bits), value_bytes(entry.type));
}

void GgufWriter::add_tensor(std::string_view name, FormatId format,
                            std::span<const std::uint64_t> shape,
                            std::span<const std::uint8_t> data) {
  add_tensor(name, format, shape, [data](const ByteSink& sink) { return sink(data); });
}

void GgufWriter::add_tensor(std::string_view name, FormatId format,
                            std::span<const std::uint64_t> shape, TensorSource source) {
  const std::string label = fmt::format("tensor `{}`", printable(name));
  if (name.empty()) return fail(invalid_argument("a tensor's name is empty"));
  if (!tensor_names_.emplace(name).second)
    return fail(invalid_argument("{} is given twice", label));
  auto bytes = tensor_bytes(format, shape);
  if (!bytes.ok()) return fail(bytes.status().with_context(label));
  append(tensor_infos_, static_cast<std::uint64_t>(name.size()));
  tensor_infos_ += name;
  append(tensor_infos_, static_cast<std::uint32_t>(shape.size()));
  for (const std::uint64_t length : shape) append(tensor_infos_, length);
  append(tensor_infos_, static_cast<std::uint32_t>(format));
  append(tensor_infos_, data_bytes_);
  tensors_.push_back({std::string(name), std::move(source), *bytes});
  const auto end = checked_add(data_bytes_, *bytes);
  const auto next = end ? checked_align_up<Bytes>(*end, alignment_) : std::nullopt;
  if (!next) return fail(invalid_argument("{}: the file's size overflows", label));
  data_bytes_ = *next;
}

std::string GgufWriter::start() const {
  std::string start = "GGUF";
  append(start, std::uint32_t{3});
  append(start, static_cast<std::uint64_t>(tensors_.size()));
  append(start, pair_count_);
  return start;
}

Bytes GgufWriter::header_bytes() const {
  return start().size() + pairs_.size() + tensor_infos_.size();
}

Status GgufWriter::write(const ByteSink& sink) const {
  STRATA_TRY(status_);
  const std::string first = start();
  for (const std::string_view part :
       {std::string_view(first), std::string_view(pairs_), std::string_view(tensor_infos_)})
    STRATA_TRY(sink(as_bytes(part)));
  return write_data(sink);
}

Status GgufWriter::check_space(const File& file) const {
  const auto bytes = checked_add(header_bytes(), data_bytes_);
  const Bytes free = free_disk_bytes(file.descriptor());
  if (bytes && free >= kSpareDiskBytes && *bytes <= free - kSpareDiskBytes) return {};
  return resource_exhausted("{}: the disk has {} left, too little for a file of {}",
                            printable(file.path()), human_bytes(free),
                            human_bytes(bytes.value_or(~Bytes{0})));
}

Status GgufWriter::write_data(const ByteSink& sink) const {
  Bytes last_bytes = header_bytes();  // of what was written since the last aligned place
  for (const Tensor& tensor : tensors_) {
    STRATA_TRY(put_zeros(sink, *checked_align_up<Bytes>(last_bytes, alignment_) - last_bytes));
    Bytes left = tensor.bytes;
    const auto counting = [&](std::span<const std::uint8_t> piece) -> Status {
      if (piece.size() > left)
        return invalid_argument("tensor `{}` was given more than its {} bytes",
                                printable(tensor.name), tensor.bytes);
      left -= piece.size();
      return sink(piece);
    };
    STRATA_TRY(tensor.source(counting));
    if (left != 0)
      return invalid_argument("tensor `{}` was given {} of its {} bytes", printable(tensor.name),
                              tensor.bytes - left, tensor.bytes);
    last_bytes = tensor.bytes;
  }
  if (tensors_.empty()) return {};
  return put_zeros(sink, *checked_align_up<Bytes>(last_bytes, alignment_) - last_bytes);
}

Status GgufWriter::write(const std::string& path) const {
  const std::string partial = path + ".partial";
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return invalid_argument("{}: is not a regular file", printable(path));
  STRATA_ASSIGN(File file, File::create_new(partial));
  const auto write_all = [&]() -> Status {
    STRATA_TRY(status_);
    STRATA_TRY(check_space(file));
    STRATA_TRY(write([&](std::span<const std::uint8_t> bytes) { return file.write(bytes); }));
    STRATA_TRY(file.close());
    std::filesystem::rename(partial, path, error);
    if (error) return io_error("{}: cannot be put in place: {}", printable(path), error.message());
    return {};
  };
  Status status = write_all();
  if (!status.ok()) std::remove(partial.c_str());
  return status;
}

}  // namespace strata
