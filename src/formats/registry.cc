#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "formats/all.h"

namespace strata {
namespace {

// Calls visit(at, size) for each chunk of a plain block: its offset, and its size as a constant.
template <class F, std::size_t kIndex = 0, std::size_t kOffset = 0, class Visit>
void for_each_chunk(const Visit& visit) {
  if constexpr (kIndex < F::kFields.size()) {
    constexpr Field field = F::kFields[kIndex];
    static_assert(field.bytes % field.chunk == 0, "a field is cut into equal chunks");
    constexpr std::size_t end = kOffset + field.bytes;
    for (std::size_t at = kOffset; at < end; at += field.chunk)
      visit(at, std::integral_constant<std::size_t, field.chunk>{});
    for_each_chunk<F, kIndex + 1, end>(visit);
  } else {
    static_assert(kOffset == F::kBytes, "the fields cover the block");
  }
}

template <class F>
void decode_row(const std::uint8_t* row, std::int64_t elements, float* out) {
  for (std::int64_t i = 0; i < elements; i += F::kElements, row += F::kBytes)
    F::decode(row, out + i);
}

template <class F>
void encode_row(const float* in, std::int64_t elements, std::uint8_t* row) {
  for (std::int64_t i = 0; i < elements; i += F::kElements, row += F::kBytes)
    F::encode(in + i, row);
}

template <class F>
void repack_group(const std::uint8_t* plain_rows, std::int64_t row_bytes, std::uint8_t* group) {
  for (std::int64_t block = 0; block < row_bytes; block += F::kBytes, group += kLanes * F::kBytes)
    for_each_chunk<F>([&](std::size_t at, auto size) {
      for (int lane = 0; lane < kLanes; ++lane)
        std::memcpy(group + at * kLanes + lane * size(), plain_rows + lane * row_bytes + block + at,
                    size());
    });
}

template <class F>
void unpack_row(const std::uint8_t* group, std::int64_t row_bytes, int lane,
                std::uint8_t* plain_row) {
  for (std::int64_t block = 0; block < row_bytes; block += F::kBytes, group += kLanes * F::kBytes)
    for_each_chunk<F>([&](std::size_t at, auto size) {
      std::memcpy(plain_row + block + at, group + at * kLanes + lane * size(), size());
    });
}

template <class F>
FormatOps ops_of() {
  return {
      .info = {F::kId, format_name(F::kId), F::kElements, F::kBytes},
      .activation = activation_kind<typename F::Activation>(),
      .decode_row = decode_row<F>,
      .encode_row = encode_row<F>,
      .repack_group = repack_group<F>,
      .unpack_row = unpack_row<F>,
  };
}

template <class... F>
std::array<FormatOps, sizeof...(F)> table_of(FormatList<F...>) {
  return {ops_of<F>()...};
}

const auto& table() {
  static const auto all = table_of(AllFormats{});
  return all;
}

}  // namespace

const FormatOps* find_format(FormatId id) {
  const auto found =
      std::ranges::find(table(), id, [](const FormatOps& ops) { return ops.info.id; });
  return found == table().end() ? nullptr : &*found;
}

Result<const FormatOps*> require_format(FormatId id, std::string_view tensor) {
  if (const FormatOps* ops = find_format(id)) return ops;
  std::string known;
  for (const FormatOps& ops : table())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", ops.info.name);
  return unsupported("tensor '{}' is stored as {} (type {}); Strata computes with {}", tensor,
                     format_name(id), static_cast<std::uint32_t>(id), known);
}

void repack_rows(const FormatOps& ops, const std::uint8_t* src, std::int64_t rows,
                 std::int64_t row_bytes, std::uint8_t* dst) {
  const std::int64_t whole = rows - rows % kLanes;
  for (std::int64_t row = 0; row < whole; row += kLanes)
    ops.repack_group(src + row * row_bytes, row_bytes, dst + row * row_bytes);
  const std::int64_t left_over_bytes = (rows - whole) * row_bytes;
  if (left_over_bytes > 0)
    std::memcpy(dst + whole * row_bytes, src + whole * row_bytes, left_over_bytes);
}

void decode_interleaved_row(const FormatOps& ops, const std::uint8_t* matrix, std::int64_t rows,
                            std::int64_t row, std::int64_t elements, float* out) {
  const std::int64_t row_size = row_bytes(ops.info, elements);
  if (row >= rows - rows % kLanes) {
    ops.decode_row(matrix + row * row_size, elements, out);
    return;
  }
  // A block's group is contiguous, so some blocks at a time are unpacked into a small buffer.
  std::array<std::uint8_t, 2048> plain;
  const std::int64_t span_blocks = static_cast<std::int64_t>(plain.size()) / ops.info.block_bytes;
  const std::int64_t blocks = elements / ops.info.block_elements;
  const std::uint8_t* group = matrix + (row - row % kLanes) * row_size;
  for (std::int64_t block = 0; block < blocks; block += span_blocks) {
    const std::int64_t count = std::min(span_blocks, blocks - block);
    const std::int64_t bytes = count * ops.info.block_bytes;
    ops.unpack_row(group, bytes, static_cast<int>(row % kLanes), plain.data());
    ops.decode_row(plain.data(), count * ops.info.block_elements, out);
    group += bytes * kLanes;
    out += count * ops.info.block_elements;
  }
}

}  // namespace strata
