// Reads GGUF files (versions 2 and 3, little-endian, single or split).
// Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
#pragma once

#include <array>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/format_id.h"
#include "base/status.h"
#include "base/units.h"
#include "gguf/metadata.h"

namespace strata {

struct TensorInfo {
  std::string name;
  FormatId format;
  std::array<std::uint64_t, 4> shape;  // shape[0] is the row length; unused dimensions are 1
  std::uint32_t dimensions;            // 1..4
  std::uint32_t file;                  // index into GgufFile::paths()
  Bytes offset;                        // absolute position in that file
  Bytes bytes;

  std::uint64_t row_elements() const { return shape[0]; }
  std::uint64_t rows() const { return shape[1] * shape[2] * shape[3]; }
};

// What the header of a GGUF file says, every offset and size checked against the file's length.
// Immutable after open; safe to read from any thread. Holds no open file.
class GgufFile {
 public:
  // Opens `path`; where it is the first of a split (-00001-of-0000N) all parts are read.
  static Result<GgufFile> open(const std::string& path);

  // Parses one file's header from memory; `file_bytes` is the length the whole file would have.
  static Result<GgufFile> parse(std::span<const std::uint8_t> header, Bytes file_bytes,
                                const std::string& path);

  const Metadata& metadata() const { return *metadata_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* find_tensor(std::string_view name) const;
  std::span<const std::string> paths() const { return paths_; }
  std::uint32_t version() const { return version_; }
  Bytes total_bytes() const { return total_bytes_; }  // of all parts
  std::span<const std::string> warnings() const { return warnings_; }

 private:
  using Header = std::shared_ptr<const std::vector<std::uint8_t>>;

  static Result<GgufFile> open_one(const std::string& path);
  static Result<GgufFile> read(Header bytes, Bytes file_bytes, const std::string& path,
                               Bytes& wanted);
  Status add_parts(const std::string& path);
  Status add_part(GgufFile part);
  Status check_split(std::uint32_t part, std::uint32_t parts) const;
  Status index_names();

  Header header_bytes_;  // backs every string_view
  std::shared_ptr<const Metadata> metadata_ = std::make_shared<const Metadata>();
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_, sorted by name
  std::vector<std::string> paths_;
  std::uint32_t version_ = 0;
  Bytes total_bytes_ = 0;
  std::vector<std::string> warnings_;
};

}  // namespace strata
