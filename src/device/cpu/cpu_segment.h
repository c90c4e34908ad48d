// A graph bound to the processor's memory, and the worker's view of one step over it.
#pragma once

#include <vector>

#include "base/thread_team.h"
#include "device/cpu/attention_tiles.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/kernels.h"
#include "device/device.h"
#include "formats/registry.h"

namespace strata {

struct CpuSegment final : Segment {
  explicit CpuSegment(AttentionMemory memory) : attention_memory(memory) {}

  SegmentSpec spec;
  ValueLayout layout;
  const KernelTable* kernels = nullptr;
  bool reference = false;
  AttentionMemory attention_memory;

  Buffer arena;        // values
  Buffer activations;  // quantized activations: two halves, one per block kind
  Buffer attention;    // laid out by attention_memory
  std::vector<std::vector<double>> rope_frequencies;  // by operation; empty for other operations

  // Filled in at the start of each step.
  std::vector<Position> positions;     // by row
  std::vector<std::int32_t> slice_of;  // by row
  std::int32_t rows = 0;
  std::int32_t logit_rows = 0;
};

// Memory one worker needs for itself, sized once at bind.
struct WorkerScratch {
  std::vector<const void*> activations;
  std::vector<float*> outs;
  std::vector<float> floats;              // of the operation under way
  std::vector<std::int32_t> expert_rows;  // routed rows ordered by expert
  std::vector<std::int32_t> expert_ends;  // by expert
};

Bytes worker_scratch_bytes(const Graph& graph, const StepLimits& limits, bool reference);
WorkerScratch make_worker_scratch(const Graph& graph, const StepLimits& limits, bool reference);

// Runs one operation of a step on one worker; every worker of the team calls it with the same
// operation, and a barrier follows.
class OpRunner {
 public:
  OpRunner(CpuSegment& segment, const StepInputs& inputs, Worker& worker, WorkerScratch& scratch)
      : s_(segment), in_(inputs), w_(worker), scratch_(scratch) {}

  void run(std::size_t op_index);

 private:
  struct Rows {
    float* data;
    std::int64_t stride;
    std::int64_t count;
    std::int32_t width;
    float* row(std::int64_t i) const { return data + i * stride; }
  };
  Rows rows(ValueId id) const;
  const WeightView& weight(WeightId id) const;
  const float* vector(WeightId id) const;
  template <class F>
  void each_row(std::int64_t count, F f) const;  // this worker's share

  void apply(const EmbedOp& op);
  void apply(const NormOp& op);
  void apply(const MatMulOp& op);
  void apply(const ConcatOp& op);
  void apply(const RopeTableOp& op);
  void apply(const RopeOp& op);
  void apply(const AttentionOp& op);
  void apply(const AddOp& op);
  void apply(const ScaleOp& op);
  void apply(const GateOp& op);
  void apply(const RouteOp& op);
  void apply(const ExpertMatMulOp& op);
  void apply(const CombineOp& op);
  void apply(const SelectLogitRowsOp& op);
  void apply(const SoftcapOp& op);
  void apply(const ActivateOp& op);
  void apply(const ShortConvOp& op);
  void apply(const SsmScanOp& op);
  void apply(const GatedDeltaOp& op);
  void apply(const LerpOp& op);
  void apply(const TokenShiftOp& op);
  void apply(const Rwkv7Op& op);

  void store_cache(const AttentionOp& op);
  AttentionTask attention_task(const AttentionOp& op, const AttentionTile& tile,
                               PositionRange* seen) const;
  // Computes this worker's partitions of a part, and folds them if it has the first one, too.
  void attend(const AttentionOp& op, const TilePart& part);
  // Folds the partitions that others computed of a part which this worker began.
  void join(const AttentionOp& op, const TilePart& part);

  // Elements [first, last) of a layer's state in the slice's slot, cleared at the sequence's start.
  float* state(const StateSlot& place, const StepSlice& slice, std::int64_t first,
               std::int64_t last) const;

  // Quantizes the input's rows for every format among the projections, then meets the others.
  void prepare_activations(const Rows& in, const std::vector<Projection>& projections);
  ActivationKind kind_for(FormatId format) const;
  const void* activation_row(const Rows& in, ActivationKind kind, std::int64_t row,
                             std::int64_t first_column = 0) const;
  // out[i] = weights * activations[i], scaled and biased, of this worker's part of a slice's rows:
  // its share, or for many rows what it comes to.
  void multiply(const WeightView& view, const Projection& projection, std::int64_t slice,
                std::int64_t count);
  void multiply_piece(const WeightView& view, const RowPiece& piece, Worker::Range range,
                      std::int64_t count);
  void multiply_reference(const WeightView& view, const RowPiece& piece, Worker::Range range,
                          std::int64_t count);
  // Scale and bias of these rows of out[i].
  void finish(const Projection& projection, std::int64_t slice, std::int64_t slice_rows,
              Worker::Range range, std::int64_t count);
  void order_by_expert(const Rows& ids, std::int64_t experts);

  CpuSegment& s_;
  const StepInputs& in_;
  Worker& w_;
  WorkerScratch& scratch_;
  std::size_t op_index_ = 0;
};

template <class F>
void OpRunner::each_row(std::int64_t count, F f) const {
  const auto range = w_.share(count);
  for (std::int64_t i = range.first; i < range.last; ++i) f(i);
}

}  // namespace strata
