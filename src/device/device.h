// Device: one processor's memory and kernels. Knows nothing of requests, files or policies.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "graph/graph.h"
#include "graph/value_layout.h"

namespace strata {

// Memory of a device, zeroed when allocated, freed with the object. `data` is an address on the
// device; host code may dereference it only where DeviceInfo::host_memory is set.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::uint8_t* data, Bytes bytes, std::shared_ptr<void> owner)
      : data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  std::uint8_t* data() const { return data_; }
  Bytes bytes() const { return bytes_; }

 private:
  std::uint8_t* data_ = nullptr;
  Bytes bytes_ = 0;
  std::shared_ptr<void> owner_;
};

struct DeviceInfo {
  std::string name;  // e.g. "cpu (avx2, 2 threads)"
  bool host_memory = true;
};

// Consecutive rows of a matrix in a device's layout, 32-byte aligned.
struct RowPiece {
  const std::uint8_t* data = nullptr;
  std::int64_t first_row = 0;  // within the slice; a multiple of 8
  std::int64_t rows = 0;
};

// A weight on a device: every slice (expert) is a list of `pieces_per_slice` pieces. A vector has
// one piece of f32 per slice.
struct WeightView {
  FormatId format = FormatId::F32;
  std::int64_t columns = 0;
  std::int64_t rows = 0;  // of a slice
  std::size_t pieces_per_slice = 1;
  std::vector<RowPiece> pieces;

  std::span<const RowPiece> slice(std::int64_t index) const {
    return std::span(pieces).subspan(static_cast<std::size_t>(index) * pieces_per_slice,
                                     pieces_per_slice);
  }
};

// kQ8_0: 8-bit codes, of which 32 elements of a vector share an f16 scale.
enum class CacheFormat : std::uint8_t { kF32, kF16, kQ8_0 };
std::string_view to_string(CacheFormat format);

// "f32", "f16" or "q8_0"; nullopt for another name.
std::optional<CacheFormat> cache_format_by_name(std::string_view name);

// The cache blocks of one group on a device.
struct CacheView {
  std::uint8_t* data = nullptr;
  Bytes block_bytes = 0;
  std::int32_t blocks = 0;
};

constexpr std::int32_t kBlockTokens = 32;  // tokens of a cache block

// Bytes of a key or value of one head; the elements are padded to a multiple of 8.
Bytes cache_vector_bytes(std::int32_t elements, CacheFormat format);

// Bytes of one block of a group: keys and values of kBlockTokens tokens in every layer, or a
// sequence's state in every layer.
Bytes cache_block_bytes(const CacheGroupSpec& group, CacheFormat format);

// Bytes of one layer's state in a block.
Bytes state_layer_bytes(const CacheSpec& spec);

// A graph bound to a device's memory.
struct SegmentSpec {
  const Graph* graph = nullptr;
  std::vector<WeightView> weights;  // by WeightId
  std::vector<CacheView> caches;    // by cache group
  CacheFormat cache_format = CacheFormat::kF16;
  StepLimits limits;
  std::int32_t context = 0;  // tokens a sequence may have
};

class Segment {
 public:
  virtual ~Segment() = default;
};

// One sequence's rows in a step.
struct StepSlice {
  std::int32_t first_row = 0;
  std::int32_t rows = 0;
  Position first = 0;  // position of the first row
  // By cache group. A group of states has one block, which holds the state before position `first`
  // and afterwards the one behind the last row; from position 0 on its content does not matter.
  std::vector<std::span<const BlockId>> block_tables;
};

struct StepInputs {
  std::span<const TokenId> tokens;  // one per row, slices one after the other
  std::span<const StepSlice> slices;
  std::span<const std::int32_t> logit_rows;  // rows that want logits, ascending
};

// Whether the step fits the limits, and the graph has an embedding for every token and position.
Status check_step(const Graph& graph, const StepLimits& limits, const StepInputs& inputs);

// Consecutive rows of a slice of a matrix.
struct SliceRows {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t of = 0;  // rows of the slice
};

// Thread rules: one call at a time on a device and its segments.
class Device {
 public:
  virtual ~Device() = default;

  virtual DeviceInfo info() const = 0;

  // Fails with kResourceExhausted, saying how much was asked for.
  virtual Result<Buffer> allocate(Bytes bytes) = 0;

  // Turns plain rows of a matrix, as they lie in a file, into the device's layout, which has the
  // same size. REQUIRES: destination, where the first of these rows goes, holds them; they start
  // and, unless they reach the slice's end, stop at a multiple of 8.
  virtual Status prepare(FormatId format, std::int64_t columns, SliceRows rows,
                         std::span<const std::uint8_t> source, std::uint8_t* destination) = 0;

  // Decodes a one-dimensional tensor to f32. REQUIRES: destination holds `elements` f32.
  virtual Status prepare_vector(FormatId format, std::int64_t elements,
                                std::span<const std::uint8_t> source,
                                std::uint8_t* destination) = 0;

  // REQUIRES: the graph is valid and the spec's views fit it; all outlive the segment.
  virtual Result<std::unique_ptr<Segment>> bind(const SegmentSpec& spec) = 0;

  // Bytes bind() will allocate besides what the spec brings. Fails with kUnsupported, naming the
  // tensor, where the device cannot compute with a weight's format.
  virtual Result<Bytes> segment_bytes(const Graph& graph, const StepLimits& limits) const = 0;

  // Copies whole blocks of a group's cache.
  virtual Status copy_block(const CacheView& cache, BlockId from, BlockId to) = 0;

  // Computes one step. The graph's output, one row of f32 per logit row, lies in host memory until
  // the next call.
  virtual Result<std::span<const float>> run(Segment& segment, const StepInputs& inputs) = 0;
};

}  // namespace strata
