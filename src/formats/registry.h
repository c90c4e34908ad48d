// The formats at run time: a table made from AllFormats, and the interleaved layout on whole
// matrices (format.h describes it). Everything here is pure and may be called from any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/format_id.h"
#include "base/status.h"
#include "formats/format.h"

namespace strata {

// REQUIRES of every member: `elements` a multiple of info.block_elements, `row_bytes` a multiple of
// info.block_bytes, buffers of the stated sizes, source and destination apart.
struct FormatOps {
  FormatInfo info;
  ActivationKind activation;

  // One plain row to or from `elements` f32. Decoding is exact.
  void (*decode_row)(const std::uint8_t* row, std::int64_t elements, float* out);
  void (*encode_row)(const float* in, std::int64_t elements, std::uint8_t* row);

  // kLanes consecutive plain rows to one interleaved group of the same size.
  void (*repack_group)(const std::uint8_t* plain_rows, std::int64_t row_bytes, std::uint8_t* group);
  // Row `lane` of a group back to its plain bytes: the exact inverse.
  void (*unpack_row)(const std::uint8_t* group, std::int64_t row_bytes, int lane,
                     std::uint8_t* plain_row);
};

// Null for a format Strata does not compute with.
const FormatOps* find_format(FormatId id);

// As find_format, or kUnsupported with a sentence that names the tensor, its format and the
// formats there are.
Result<const FormatOps*> require_format(FormatId id, std::string_view tensor);

// Bytes of one plain row. REQUIRES: elements is a multiple of the format's block.
constexpr std::int64_t row_bytes(const FormatInfo& info, std::int64_t elements) {
  return elements / info.block_elements * info.block_bytes;
}

// Interleaves all whole groups of `rows` plain rows; the rows left over are copied as they are.
void repack_rows(const FormatOps& ops, const std::uint8_t* src, std::int64_t rows,
                 std::int64_t row_bytes, std::uint8_t* dst);

// Decodes row `row` of a matrix of `rows` rows that repack_rows has written.
void decode_interleaved_row(const FormatOps& ops, const std::uint8_t* matrix, std::int64_t rows,
                            std::int64_t row, std::int64_t elements, float* out);

}  // namespace strata
