#include "device/cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/math.h"
#include "base/thread_team.h"
#include "device/cpu/cpu_segment.h"
#include "device/cpu/isa_select.h"
#include "formats/registry.h"

namespace strata {
namespace {

constexpr int kMaxThreads = 1024;
constexpr Bytes kHugePage = 2 * kMiB;

class CpuDevice final : public Device {
 public:
  CpuDevice(const CpuOptions& options, const KernelTable* kernels)
      : reference_(options.reference),
        kernels_(kernels),
        team_(options.threads, options.processors) {}

  DeviceInfo info() const override {
    return {fmt::format("cpu ({}, {} thread{}{})", kernels_->name, team_.size(),
                        team_.size() == 1 ? "" : "s", reference_ ? ", f32 activations" : ""),
            true};
  }

  Result<Buffer> allocate(Bytes bytes) override;
  Status prepare(FormatId format, std::int64_t columns, SliceRows rows,
                 std::span<const std::uint8_t> source, std::uint8_t* destination) override;
  Status prepare_vector(FormatId format, std::int64_t elements,
                        std::span<const std::uint8_t> source, std::uint8_t* destination) override;
  Result<std::unique_ptr<Segment>> bind(const SegmentSpec& spec) override;
  Result<Bytes> segment_bytes(const Graph& graph, const StepLimits& limits) const override;
  Status copy_block(const CacheView& cache, BlockId from, BlockId to) override;
  Result<std::span<const float>> run(Segment& segment, const StepInputs& inputs) override;

 private:
  Worker::Range part_to_prepare(const Worker& w, SliceRows rows) const;

  const bool reference_;
  const KernelTable* kernels_;
  ThreadTeam team_;
  std::vector<WorkerScratch> scratch_;  // by worker; sized for the segment bound last
};

std::vector<double> rope_frequencies(const RopeTableOp& op, const SegmentSpec& spec) {
  const bool beyond = op.long_factors && spec.context > op.original_context;
  const std::optional<WeightId> chosen = beyond ? op.long_factors : op.factors;
  const float* factors = nullptr;
  if (chosen)
    factors = reinterpret_cast<const float*>(
        spec.weights[static_cast<std::size_t>(chosen->value)].pieces.front().data);
  std::vector<double> frequencies;
  for (std::int32_t i = 0; i < op.dimensions / 2; ++i) {
    double kept = 0;
    if (op.yarn) {
      const double width = std::max(op.yarn->high - op.yarn->low, 0.001);
      kept = op.yarn->strength * (1.0 - std::clamp((i - op.yarn->low) / width, 0.0, 1.0));
    }
    double f = pow_f64(op.base, -2.0 * i / op.dimensions);
    if (factors != nullptr) f /= static_cast<double>(factors[i]);
    frequencies.push_back(f * (op.scale + (1.0 - op.scale) * kept));
  }
  return frequencies;
}

}  // namespace

Result<Buffer> CpuDevice::allocate(Bytes bytes) {
  if (bytes == 0) bytes = 1;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return resource_exhausted("the system refused {} bytes of memory: {}", bytes,
                              std::strerror(errno));
#ifdef MADV_HUGEPAGE
  // Only advice: with small pages everything works, slower.
  if (bytes >= kHugePage) ::madvise(data, bytes, MADV_HUGEPAGE);
#endif
  std::shared_ptr<void> owner(data, [bytes](void* p) { munmap(p, bytes); });
  return Buffer(static_cast<std::uint8_t*>(data), bytes, std::move(owner));
}

// A page of memory comes from the node of the thread that first writes to it. So where there are
// nodes, a thread prepares rows that it will read.
Worker::Range CpuDevice::part_to_prepare(const Worker& w, SliceRows rows) const {
  if (!team_.bound()) return w.share(rows.count, kLanes);
  const auto mine = w.share(rows.of, kLanes);
  const auto within = [&](std::int64_t row) {
    return std::clamp<std::int64_t>(row - rows.first, 0, rows.count);
  };
  return {within(mine.first), within(mine.last)};
}

Status CpuDevice::prepare(FormatId format, std::int64_t columns, SliceRows rows,
                          std::span<const std::uint8_t> source, std::uint8_t* destination) {
  STRATA_ASSIGN(const FormatOps* ops, require_format(format, "weights"));
  const std::int64_t size = row_bytes(ops->info, columns);
  if (static_cast<std::int64_t>(source.size()) != rows.count * size)
    return internal_error("{} bytes given for {} rows of {} bytes", source.size(), rows.count,
                          size);
  team_.run([&](Worker& w) {
    const auto range = part_to_prepare(w, rows);
    repack_rows(*ops, source.data() + range.first * size, range.last - range.first, size,
                destination + range.first * size);
  });
  return {};
}

Status CpuDevice::prepare_vector(FormatId format, std::int64_t elements,
                                 std::span<const std::uint8_t> source, std::uint8_t* destination) {
  STRATA_ASSIGN(const FormatOps* ops, require_format(format, "weights"));
  if (static_cast<std::int64_t>(source.size()) != row_bytes(ops->info, elements))
    return internal_error("{} bytes given for a vector of {} elements", source.size(), elements);
  ops->decode_row(source.data(), elements, reinterpret_cast<float*>(destination));
  return {};
}

Result<Bytes> CpuDevice::segment_bytes(const Graph& graph, const StepLimits& limits) const {
  for (const Weight& weight : graph.weights)
    STRATA_TRY(require_format(weight.format, weight.name).status());
  return layout_values(graph, limits).arena_bytes + activation_scratch_bytes(graph, limits) +
         AttentionMemory(graph, limits, team_.size()).bytes() +
         static_cast<Bytes>(team_.size()) * worker_scratch_bytes(graph, limits, reference_);
}

Result<std::unique_ptr<Segment>> CpuDevice::bind(const SegmentSpec& spec) {
  STRATA_TRY(segment_bytes(*spec.graph, spec.limits).status());
  auto segment =
      std::make_unique<CpuSegment>(AttentionMemory(*spec.graph, spec.limits, team_.size()));
  segment->spec = spec;
  segment->kernels = kernels_;
  segment->reference = reference_;
  segment->layout = layout_values(*spec.graph, spec.limits);
  STRATA_ASSIGN(segment->arena, allocate(segment->layout.arena_bytes));
  STRATA_ASSIGN(segment->activations, allocate(activation_scratch_bytes(*spec.graph, spec.limits)));
  STRATA_ASSIGN(segment->attention, allocate(segment->attention_memory.bytes()));
  for (const Op& op : spec.graph->ops) {
    const auto* table = std::get_if<RopeTableOp>(&op);
    segment->rope_frequencies.push_back(table ? rope_frequencies(*table, spec)
                                              : std::vector<double>());
  }
  scratch_.clear();
  for (int i = 0; i < team_.size(); ++i)
    scratch_.push_back(make_worker_scratch(*spec.graph, spec.limits, reference_));
  return std::unique_ptr<Segment>(std::move(segment));
}

Status CpuDevice::copy_block(const CacheView& cache, BlockId from, BlockId to) {
  const auto in_range = [&](BlockId id) { return id.value >= 0 && id.value < cache.blocks; };
  if (!in_range(from) || !in_range(to))
    return internal_error("copy of cache block {} to {} of {}", from.value, to.value, cache.blocks);
  std::memcpy(cache.data + static_cast<Bytes>(to.value) * cache.block_bytes,
              cache.data + static_cast<Bytes>(from.value) * cache.block_bytes, cache.block_bytes);
  return {};
}

Result<std::span<const float>> CpuDevice::run(Segment& base, const StepInputs& inputs) {
  auto& s = static_cast<CpuSegment&>(base);
  STRATA_TRY(check_step(*s.spec.graph, s.spec.limits, inputs));
  s.rows = static_cast<std::int32_t>(inputs.tokens.size());
  s.logit_rows = static_cast<std::int32_t>(inputs.logit_rows.size());
  s.positions.clear();
  s.slice_of.clear();
  for (std::size_t i = 0; i < inputs.slices.size(); ++i) {
    for (std::int32_t r = 0; r < inputs.slices[i].rows; ++r) {
      s.positions.push_back(inputs.slices[i].first + r);
      s.slice_of.push_back(static_cast<std::int32_t>(i));
    }
  }
  team_.run([&](Worker& worker) {
    OpRunner runner(s, inputs, worker, scratch_[static_cast<std::size_t>(worker.index())]);
    for (std::size_t op = 0; op < s.spec.graph->ops.size(); ++op) {
      runner.run(op);
      worker.barrier();
    }
  });
  const auto output = static_cast<std::size_t>(s.spec.graph->output.value);
  const auto stride = static_cast<std::size_t>(s.layout.strides[output]);
  const auto width = static_cast<std::size_t>(s.spec.graph->output_width());
  auto* data = reinterpret_cast<float*>(s.arena.data() + s.layout.offsets[output]);
  const auto count = static_cast<std::size_t>(s.logit_rows);
  // Rows are padded in the arena; close the gaps in place, front to back.
  if (stride != width)
    for (std::size_t i = 1; i < count; ++i)
      std::memmove(data + i * width, data + i * stride, width * sizeof(float));
  return std::span<const float>(data, count * width);
}

Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options) {
  const auto threads = static_cast<std::size_t>(std::max(options.threads, 0));
  if (!options.processors.empty() && options.processors.size() != threads)
    return internal_error("processors given for {} of {} threads", options.processors.size(),
                          threads);
  if (options.threads < 1 || options.threads > kMaxThreads)
    return invalid_argument("{} threads asked for; 1 to {} are possible", options.threads,
                            kMaxThreads);
  STRATA_ASSIGN(const KernelTable* kernels, select_kernels(options.isa));
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(options, kernels));
}

}  // namespace strata
