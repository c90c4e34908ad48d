// Walks the bytes of one GGUF header; internal to gguf/.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "gguf/gguf_file.h"
#include "gguf/metadata.h"

namespace strata {

constexpr Bytes kMaxHeaderBytes = 256 * kMiB;  // the largest vocabularies need some 30 MiB
constexpr int kMaxArrayDepth = 8;
constexpr std::size_t kMaxNameBytes = 65535;  // the specification's limit for keys

struct GgufHeader {
  std::uint32_t version = 0;
  Metadata metadata;
  std::vector<TensorInfo> tensors;  // offsets count from the start of the tensor data
  Bytes end = 0;                    // where the header ends in the file
};

// Reads a header of which `bytes` are at hand, the file having `file_bytes`. Memory grows with the
// bytes at hand, never with a count or length the file merely claims.
class HeaderReader {
 public:
  HeaderReader(std::span<const std::uint8_t> bytes, Bytes file_bytes)
      : bytes_(bytes), file_bytes_(file_bytes) {}

  Result<GgufHeader> read();

  // After a failed read: how many bytes from the file's start the read needs to come further;
  // 0 where more bytes do not help.
  Bytes wanted() const { return wanted_; }

 private:
  Result<std::string_view> take(Bytes count);
  template <typename T>
  Result<T> number();
  Result<std::string_view> text(std::size_t limit);
  Status check_count(Bytes count, Bytes least_bytes, std::string_view what) const;
  std::size_t room_for(Bytes count, Bytes least_bytes) const;

  Status check_version(std::uint32_t version) const;
  Status read_pairs(Bytes count, Metadata& metadata);
  Result<MetadataEntry> entry();
  Result<MetadataArray> array(int depth);
  Status read_tensors(Bytes count, std::vector<TensorInfo>& tensors);
  Status read_geometry(TensorInfo& tensor);

  std::span<const std::uint8_t> bytes_;
  Bytes file_bytes_;
  Bytes position_ = 0;
  Bytes wanted_ = 0;
};

// What a file that does not start as a GGUF seems to be, and what to do about it.
Status not_a_gguf(std::span<const std::uint8_t> start, Bytes file_bytes);

}  // namespace strata
