// Loads whole weights into one buffer: reads runs of rows in the order of the files while the
// device lays out the run before.
#include <algorithm>
#include <memory>
#include <tuple>

#include "weights/read_ahead.h"
#include "weights/weight_store.h"

namespace strata {
namespace {

// What is read at once: enough for a disk, little enough to still be in a processor's cache when
// the device comes to it.
constexpr Bytes kReadBytes = 2 * kMiB;

// A run of a matrix's rows, or a whole vector.
struct Piece {
  const Weight* weight;
  const TensorInfo* tensor;
  Bytes offset;  // in the tensor's file
  Bytes bytes;
  SliceRows rows;
  std::uint8_t* destination;
};

class Loader {
 public:
  Loader(const ModelManifest& manifest, Device& device, const PlacementPlan& plan,
         const LoadProgress& progress)
      : manifest_(manifest),
        device_(device),
        progress_(progress),
        total_(plan.weights),
        staging_bytes_(plan.staging),
        longest_(plan.staging / ReadAhead::kFewestSlots) {}

  // Plans the reading of a weight and says where it will lie.
  Status add(const Weight& weight, std::uint8_t* destination, WeightView& view) {
    const TensorInfo* tensor = manifest_.file().find_tensor(weight.name);
    if (tensor == nullptr) return internal_error("tensor '{}' vanished", weight.name);
    view.columns = weight.columns;
    view.rows = weight.rows;
    if (weight.role == WeightRole::kVector) {
      view.format = FormatId::F32;
      const Bytes slice_bytes = static_cast<Bytes>(weight.columns) * sizeof(float);
      for (std::int64_t slice = 0; slice < weight.slices; ++slice)
        view.pieces.push_back({destination + static_cast<Bytes>(slice) * slice_bytes, 0, 1});
      if (tensor->bytes > longest_)
        return unsupported("tensor '{}' has {} bytes; tensors read as f32 may have {}",
                           tensor->name, tensor->bytes, longest_);
      pieces_.push_back({&weight, tensor, tensor->offset, tensor->bytes, {0, 1, 1}, destination});
      return {};
    }
    view.format = weight.format;
    const Bytes slice_bytes = tensor->bytes / static_cast<Bytes>(weight.slices);
    for (std::int64_t slice = 0; slice < weight.slices; ++slice) {
      const Bytes offset = static_cast<Bytes>(slice) * slice_bytes;
      view.pieces.push_back({destination + offset, 0, weight.rows});
      STRATA_TRY(add_slice(weight, *tensor, tensor->offset + offset, destination + offset));
    }
    return {};
  }

  Status load() {
    std::vector<File> files;
    for (const std::string& path : manifest_.file().paths()) {
      STRATA_ASSIGN(File file, File::open(path));
      files.push_back(std::move(file));
    }
    std::ranges::sort(pieces_, {}, [](const Piece& piece) {
      return std::tuple(piece.tensor->file, piece.offset);
    });
    std::vector<FileRange> ranges;
    for (const Piece& piece : pieces_)
      ranges.push_back({&files[piece.tensor->file], piece.offset, piece.bytes});
    const auto staging = std::make_unique_for_overwrite<std::uint8_t[]>(staging_bytes_);
    ReadAhead reads(ranges, {staging.get(), staging_bytes_});
    for (const Piece& piece : pieces_) {
      const Status status = take(piece, reads);
      if (!status.ok()) return status.with_context(fmt::format("tensor '{}'", piece.tensor->name));
      done_ += piece.bytes;
      if (progress_ && !progress_(std::min(done_, total_), total_))
        return Status(StatusCode::kCancelled, "loading was stopped");
    }
    return {};
  }

 private:
  Status add_slice(const Weight& weight, const TensorInfo& tensor, Bytes offset,
                   std::uint8_t* destination) {
    const Bytes row_bytes = tensor.bytes / static_cast<Bytes>(weight.rows * weight.slices);
    const Bytes group_bytes = 8 * row_bytes;
    if (group_bytes > longest_)
      return unsupported("tensor '{}' has rows of {} bytes; the longest Strata reads are {}",
                         tensor.name, row_bytes, longest_ / 8);
    const auto most = static_cast<std::int64_t>(std::max<Bytes>(kReadBytes / group_bytes, 1) * 8);
    for (std::int64_t row = 0; row < weight.rows; row += most) {
      const std::int64_t rows = std::min(most, weight.rows - row);
      const Bytes at = static_cast<Bytes>(row) * row_bytes;
      pieces_.push_back({&weight,
                         &tensor,
                         offset + at,
                         static_cast<Bytes>(rows) * row_bytes,
                         {row, rows, weight.rows},
                         destination + at});
    }
    return {};
  }

  Status take(const Piece& piece, ReadAhead& reads) {
    STRATA_ASSIGN(const auto bytes, reads.next());
    const Weight& weight = *piece.weight;
    if (weight.role == WeightRole::kVector)
      return device_.prepare_vector(piece.tensor->format, weight.columns * weight.slices, bytes,
                                    piece.destination);
    return device_.prepare(weight.format, weight.columns, piece.rows, bytes, piece.destination);
  }

  const ModelManifest& manifest_;
  Device& device_;
  const LoadProgress& progress_;
  const Bytes total_;
  const Bytes staging_bytes_;
  const Bytes longest_;  // that is read at once
  Bytes done_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace

Result<std::unique_ptr<WeightStore>> WeightStore::load(const ModelManifest& manifest,
                                                       const Graph& graph,
                                                       const PlacementPlan& plan, Device& device,
                                                       const LoadProgress& progress) {
  auto store = std::make_unique<WeightStore>();
  STRATA_ASSIGN(store->buffer_, device.allocate(plan.weights));
  Loader loader(manifest, device, plan, progress);
  store->views_.resize(graph.weights.size());
  Bytes offset = 0;
  for (std::size_t i = 0; i < graph.weights.size(); ++i) {
    const Weight& weight = graph.weights[i];
    STRATA_TRY(loader.add(weight, store->buffer_.data() + offset, store->views_[i]));
    STRATA_ASSIGN(const Bytes bytes, weight_bytes(weight));
    offset += bytes;
  }
  STRATA_TRY(loader.load());
  return store;
}

}  // namespace strata
