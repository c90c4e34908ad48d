// Loads whole weights into one buffer: reads a run of rows, lets the device lay them out.
#include <algorithm>

#include "base/file.h"
#include "weights/weight_store.h"

namespace strata {
namespace {

class Loader {
 public:
  Loader(const ModelManifest& manifest, Device& device, const PlacementPlan& plan,
         const LoadProgress& progress)
      : manifest_(manifest), device_(device), progress_(progress), total_(plan.weights) {
    staging_.resize(plan.staging);
  }

  Status open_files() {
    for (const std::string& path : manifest_.file().paths()) {
      STRATA_ASSIGN(File file, File::open(path));
      files_.push_back(std::move(file));
    }
    return {};
  }

  Status load(const Weight& weight, std::uint8_t* destination, WeightView& view) {
    const TensorInfo* tensor = manifest_.file().find_tensor(weight.name);
    if (tensor == nullptr) return internal_error("tensor '{}' vanished", weight.name);
    view.columns = weight.columns;
    view.rows = weight.rows;
    if (weight.role == WeightRole::kVector) {
      view.format = FormatId::F32;
      const Bytes slice_bytes = static_cast<Bytes>(weight.columns) * sizeof(float);
      for (std::int64_t slice = 0; slice < weight.slices; ++slice)
        view.pieces.push_back({destination + static_cast<Bytes>(slice) * slice_bytes, 0, 1});
      return load_vector(*tensor, weight.columns * weight.slices, destination);
    }
    view.format = weight.format;
    const Bytes slice_bytes = tensor->bytes / static_cast<Bytes>(weight.slices);
    for (std::int64_t slice = 0; slice < weight.slices; ++slice) {
      const Bytes offset = static_cast<Bytes>(slice) * slice_bytes;
      view.pieces.push_back({destination + offset, 0, weight.rows});
      STRATA_TRY(load_slice(*tensor, weight, tensor->offset + offset, destination + offset));
    }
    return {};
  }

 private:
  Status load_vector(const TensorInfo& tensor, std::int64_t elements, std::uint8_t* destination) {
    if (tensor.bytes > staging_.size())
      return unsupported("tensor '{}' has {} bytes; tensors read as f32 may have {}", tensor.name,
                         tensor.bytes, staging_.size());
    STRATA_ASSIGN(const auto bytes, read(tensor, tensor.offset, tensor.bytes));
    const Status status = device_.prepare_vector(tensor.format, elements, bytes, destination);
    if (!status.ok()) return status.with_context(fmt::format("tensor '{}'", tensor.name));
    return advance(tensor.bytes);
  }

  Status load_slice(const TensorInfo& tensor, const Weight& weight, Bytes offset,
                    std::uint8_t* destination) {
    const Bytes row_bytes = tensor.bytes / static_cast<Bytes>(weight.rows * weight.slices);
    const auto chunk = static_cast<std::int64_t>(staging_.size() / (row_bytes * 8)) * 8;
    if (chunk == 0)
      return unsupported("tensor '{}' has rows of {} bytes; the longest Strata reads are {}",
                         tensor.name, row_bytes, staging_.size() / 8);
    for (std::int64_t row = 0; row < weight.rows; row += chunk) {
      const std::int64_t rows = std::min(chunk, weight.rows - row);
      const Bytes at = static_cast<Bytes>(row) * row_bytes;
      STRATA_ASSIGN(const auto bytes,
                    read(tensor, offset + at, static_cast<Bytes>(rows) * row_bytes));
      const Status status =
          device_.prepare(weight.format, weight.columns, rows, bytes, destination + at);
      if (!status.ok()) return status.with_context(fmt::format("tensor '{}'", tensor.name));
      STRATA_TRY(advance(bytes.size()));
    }
    return {};
  }

  Result<std::span<const std::uint8_t>> read(const TensorInfo& tensor, Bytes offset, Bytes bytes) {
    const auto target = std::span(staging_).first(bytes);
    const Status status = files_[tensor.file].read_exactly(offset, target);
    if (!status.ok()) return status.with_context(fmt::format("tensor '{}'", tensor.name));
    return std::span<const std::uint8_t>(target);
  }

  Status advance(Bytes bytes) {
    done_ += bytes;
    if (progress_ && !progress_(std::min(done_, total_), total_))
      return Status(StatusCode::kCancelled, "loading was stopped");
    return {};
  }

  const ModelManifest& manifest_;
  Device& device_;
  const LoadProgress& progress_;
  const Bytes total_;
  Bytes done_ = 0;
  std::vector<File> files_;
  std::vector<std::uint8_t> staging_;
};

}  // namespace

Result<std::unique_ptr<WeightStore>> WeightStore::load(const ModelManifest& manifest,
                                                       const Graph& graph,
                                                       const PlacementPlan& plan, Device& device,
                                                       const LoadProgress& progress) {
  auto store = std::make_unique<WeightStore>();
  STRATA_ASSIGN(store->buffer_, device.allocate(plan.weights));
  Loader loader(manifest, device, plan, progress);
  STRATA_TRY(loader.open_files());
  Bytes offset = 0;
  for (const Weight& weight : graph.weights) {
    STRATA_ASSIGN(const Bytes bytes, weight_bytes(weight));
    store->views_.emplace_back();
    STRATA_TRY(loader.load(weight, store->buffer_.data() + offset, store->views_.back()));
    offset += bytes;
  }
  return store;
}

}  // namespace strata
