#include "gguf/gguf_file.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "base/file.h"
#include "base/printable.h"
#include "gguf/header_reader.h"
#include "gguf/splits.h"

namespace strata {
namespace {

constexpr Bytes kFirstRead = 4 * kMiB;
constexpr std::int64_t kDefaultAlignment = 32;
constexpr std::int64_t kMaxAlignment = kMiB;
constexpr std::int64_t kMaxParts = 99999;

Result<Bytes> alignment_of(const Metadata& metadata) {
  constexpr std::string_view kKey = "general.alignment";
  const MetadataEntry* entry = metadata.find(kKey);
  if (entry == nullptr) return static_cast<Bytes>(kDefaultAlignment);
  if (entry->type != ValueType::kUint32)
    return corrupt("key `{}` has type {}, where UINT32 is expected; convert the model again", kKey,
                   to_string(entry->type));
  STRATA_ASSIGN(const std::int64_t alignment, metadata.get_integer(kKey));
  if (alignment < 1 || alignment > kMaxAlignment || (alignment & (alignment - 1)) != 0)
    return corrupt("key `{}` is {}, where a power of two up to {} is expected", kKey, alignment,
                   kMaxAlignment);
  return static_cast<Bytes>(alignment);
}

Status check_overlaps(const std::vector<TensorInfo>& tensors) {
  std::vector<const TensorInfo*> order;
  order.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) order.push_back(&tensor);
  std::ranges::sort(order, {}, &TensorInfo::offset);
  for (std::size_t i = 1; i < order.size(); ++i)
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->bytes)
      return corrupt("tensors `{}` and `{}` overlap at byte {}; the file is damaged",
                     printable(order[i - 1]->name), printable(order[i]->name), order[i]->offset);
  return {};
}

// Turns the header's relative offsets into absolute ones that lie within the file.
Status place_tensors(GgufHeader& header, Bytes file_bytes) {
  STRATA_ASSIGN(const Bytes alignment, alignment_of(header.metadata));
  if (header.tensors.empty()) return {};
  const Bytes data = *checked_align_up(header.end, alignment);
  const TensorInfo* last = nullptr;
  for (TensorInfo& tensor : header.tensors) {
    if (tensor.offset % alignment != 0)
      return corrupt("tensor `{}` starts at {}, no multiple of the alignment {}",
                     printable(tensor.name), tensor.offset, alignment);
    const auto start = checked_add(data, tensor.offset);
    const auto end = start ? checked_add(*start, tensor.bytes) : std::nullopt;
    if (!end)
      return corrupt("tensor `{}` has offset {}, which overflows", printable(tensor.name),
                     tensor.offset);
    tensor.offset = *start;
    if (last == nullptr || *end > last->offset + last->bytes) last = &tensor;
  }
  const Bytes expected = last->offset + last->bytes;
  if (expected > file_bytes)
    return corrupt(
        "the file has {} bytes, but its header describes {} (up to tensor `{}`): it was cut short; "
        "download it again",
        file_bytes, expected, printable(last->name));
  return check_overlaps(header.tensors);
}

}  // namespace

Result<GgufFile> GgufFile::read(Header bytes, Bytes file_bytes, const std::string& path,
                                Bytes& wanted) {
  HeaderReader reader(*bytes, file_bytes);
  auto header = reader.read();
  wanted = reader.wanted();
  if (!header.ok()) return header.status().with_context(printable(path));
  if (Status status = place_tensors(*header, file_bytes); !status.ok())
    return status.with_context(printable(path));
  GgufFile file;
  file.header_bytes_ = std::move(bytes);
  file.metadata_ = std::make_shared<const Metadata>(std::move(header->metadata));
  file.tensors_ = std::move(header->tensors);
  file.paths_ = {path};
  file.version_ = header->version;
  file.total_bytes_ = file_bytes;
  if (Status status = file.index_names(); !status.ok()) return status.with_context(printable(path));
  return file;
}

Result<GgufFile> GgufFile::parse(std::span<const std::uint8_t> header, Bytes file_bytes,
                                 const std::string& path) {
  const auto held = std::min<Bytes>(header.size(), file_bytes);
  Bytes wanted = 0;
  return read(
      std::make_shared<const std::vector<std::uint8_t>>(header.begin(), header.begin() + held),
      file_bytes, path, wanted);
}

Result<GgufFile> GgufFile::open_one(const std::string& path) {
  STRATA_ASSIGN(const File file, File::open(path));
  const Bytes limit = std::min(file.size(), kMaxHeaderBytes);
  Bytes have = std::min(limit, kFirstRead);
  while (true) {
    auto bytes = std::make_shared<std::vector<std::uint8_t>>(have);
    STRATA_TRY(file.read_exactly(0, *bytes));
    Bytes wanted = 0;
    auto result = read(std::move(bytes), file.size(), path, wanted);
    if (wanted == 0) return result;
    if (wanted > limit)
      return resource_exhausted("{}: its header exceeds the limit of {} MiB", printable(path),
                                kMaxHeaderBytes / kMiB);
    have = std::min(limit, std::max(2 * have, wanted));
  }
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  STRATA_ASSIGN(GgufFile file, open_one(path));
  if (Status status = file.add_parts(path); !status.ok())
    return status.with_context(printable(path));
  return file;
}

// This file's own split keys must say that it is `part` (from 1) of `parts`.
Status GgufFile::check_split(std::uint32_t part, std::uint32_t parts) const {
  STRATA_ASSIGN(const std::int64_t number, metadata_->get_integer("split.no"));
  STRATA_ASSIGN(const std::int64_t count, metadata_->get_integer("split.count"));
  if (count == parts && number == static_cast<std::int64_t>(part) - 1) return {};
  return corrupt(
      "its name says part {} of {}, its keys split.no = {} (from 0) and split.count = {}; was it "
      "renamed, or do the parts come from different models?",
      part, parts, number, count);
}

Status GgufFile::add_parts(const std::string& path) {
  STRATA_ASSIGN(const auto count, metadata_->optional_integer("split.count"));
  const auto name = parse_split_name(path);
  if (!count || *count == 1) {
    if (name && name->parts > 1)
      warnings_.push_back(fmt::format(
          "{}: is named as part {} of {}, but says nothing of a split; it is read alone",
          printable(path), name->part, name->parts));
    return {};
  }
  if (*count < 1 || *count > kMaxParts)
    return corrupt("key `split.count` is {}, where 1 to {} is expected", *count, kMaxParts);
  if (!name)
    return corrupt("is one of {} parts, whose names must end in -00001-of-{:05}.gguf and so on",
                   *count, *count);
  STRATA_TRY(check_split(name->part, name->parts));
  if (name->part != 1)
    return invalid_argument("is part {} of {}; name the first part: {}", name->part, name->parts,
                            printable(split_path(name->prefix, 1, name->parts)));
  for (std::uint32_t part = 2; part <= name->parts; ++part) {
    const std::string part_path = split_path(name->prefix, part, name->parts);
    auto next = open_one(part_path);
    if (!next.ok() && next.status().code() == StatusCode::kNotFound)
      return not_found("part {} of {} is missing: {}; put all parts in one folder", part,
                       name->parts, printable(part_path));
    if (!next.ok()) return next.status();
    if (Status status = next->check_split(part, name->parts); !status.ok())
      return status.with_context(printable(part_path));
    STRATA_TRY(add_part(std::move(next).value()));
  }
  STRATA_TRY(index_names());
  STRATA_ASSIGN(const std::int64_t total, metadata_->get_integer("split.tensors.count"));
  if (total < 0 || static_cast<std::uint64_t>(total) != tensors_.size())
    return corrupt("its parts hold {} tensors, where `split.tensors.count` says {}",
                   tensors_.size(), total);
  return {};
}

Status GgufFile::add_part(GgufFile part) {
  for (TensorInfo& tensor : part.tensors_) {
    tensor.file = static_cast<std::uint32_t>(paths_.size());
    tensors_.push_back(std::move(tensor));
  }
  const auto total = checked_add(total_bytes_, part.total_bytes_);
  if (!total) return corrupt("the sizes of its parts overflow");
  total_bytes_ = *total;
  paths_.push_back(std::move(part.paths_.front()));
  return {};
}

Status GgufFile::index_names() {
  const auto name = [&](std::uint32_t index) -> std::string_view { return tensors_[index].name; };
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), 0u);
  std::ranges::sort(by_name_, {}, name);
  const auto twin = std::ranges::adjacent_find(by_name_, {}, name);
  if (twin != by_name_.end()) return corrupt("tensor `{}` is there twice", printable(name(*twin)));
  return {};
}

const TensorInfo* GgufFile::find_tensor(std::string_view wanted) const {
  const auto name = [&](std::uint32_t index) -> std::string_view { return tensors_[index].name; };
  const auto found = std::ranges::lower_bound(by_name_, wanted, {}, name);
  return found != by_name_.end() && name(*found) == wanted ? &tensors_[*found] : nullptr;
}

}  // namespace strata
