// The table of kernels an ISA's file fills in. Plain pointers only: what these files inline must
// not leak into the program (see ISA files).
#pragma once

#include <cstdint>

#include "base/units.h"

namespace strata {

// Rows [first_row, last_row) of one piece of a matrix times `count` activation rows:
// out[r][row] = dot(weight row, activations[r]). REQUIRES: first_row is a multiple of 8.
struct MatMulTask {
  const std::uint8_t* weights;  // the piece: interleaved groups of 8 rows, then plain rows
  std::int64_t columns;
  std::int64_t rows;
  std::int64_t first_row;
  std::int64_t last_row;
  const void* const* activations;  // rows in the form the format asks for
  float* const* out;               // at the piece's first row
  std::int64_t count;
};
using MatMulKernel = void (*)(const MatMulTask& task);
// Does so many rounds of arithmetic that waits for no memory; returns the operations.
using PeakKernel = std::int64_t (*)(std::int64_t rounds);

struct PositionRange {  // inclusive
  Position first;
  Position last;
};

// Of one query: the maximum of its scores and the sum of exp(score - maximum).
struct AttentionStatistics {
  float maximum;
  float sum;
};

// Attention of a tile: rows of one sequence, ascending, times query heads that share one key/value
// head.
struct AttentionTask {
  const float* query;         // per row query_heads x head_size
  std::int64_t query_stride;  // floats between rows
  std::int32_t rows;
  std::int32_t query_heads;
  std::int32_t head_size;
  std::int32_t value_size;
  const PositionRange* seen;  // by row: visible positions, neither end descending
  const std::uint8_t* cache;  // block 0's keys of this layer and key/value head
  const BlockId* table;
  std::uint64_t block_bytes;
  std::uint64_t value_offset;  // from a block's keys to its values
  float scale;
  float softcap;
  float* out;  // per row query_heads x value_size
  std::int64_t out_stride;
  AttentionStatistics* statistics;  // per row query_heads
  std::int64_t statistics_stride;
  const float* sinks = nullptr;  // query_heads scores without a value, or none
  bool values_in_keys = false;   // values are the first value_size elements of the keys
};
// The partial result over the partition that starts at `base`: of every query that sees some of it
// the sum of values, and behind those of all queries their statistics.
using AttentionPartialKernel = void (*)(const AttentionTask& task, Position base, float* scores,
                                        float* partial);

constexpr std::int32_t kAttentionPartition = 256;  // absolute positions of a partial result
constexpr std::int32_t kUnitHeads = 8;             // most query heads of a task
constexpr std::int32_t kTileQueries = 32;          // most rows times query heads

// Always inlined, since kernels of every ISA call it: a copy of its own might be made of any ISA.
[[gnu::always_inline]] constexpr std::int64_t padded_value_size(std::int64_t value_size) {
  return (value_size + 7) / 8 * 8;
}
// Floats of `queries` queries' partial result, and of the scores it is made from.
constexpr std::int64_t attention_partial_size(std::int64_t queries, std::int64_t value_size) {
  return queries * (padded_value_size(value_size) + 2);
}
constexpr std::int64_t attention_scores_size(std::int64_t queries) {
  return queries * kAttentionPartition;
}

// Writes n elements of one token into one head's keys or values of a block (cache_layout.h).
using StoreKernel = void (*)(const float* x, std::int64_t n, int token, std::uint8_t* block);

struct CacheKernels {
  AttentionPartialKernel attention;
  StoreKernel store_keys;
  StoreKernel store_values;
};
constexpr int kCacheFormats = 3;

// x = function(x + bias); bias may be null
using ActivateKernel = void (*)(float* x, const float* bias, std::int64_t n);

constexpr int kMaxFormats = 64;  // FormatId values lie below

struct KernelTable {
  const char* name;
  MatMulKernel matmul[kMaxFormats];  // null where the format has no kernel
  // f32 rows to the activation blocks of formats/format.h. n is a multiple of 32 or 256.
  void (*quantize_q8x32)(const float* x, std::int64_t n, void* out);
  void (*quantize_q8x256)(const float* x, std::int64_t n, void* out);
  // out = x / sqrt(mean(x^2) + epsilon) * weight; null: without weight
  void (*rms_norm)(const float* x, const float* weight, float epsilon, std::int64_t n, float* out);
  // out = (x - mean(x)) / sqrt(variance(x) + epsilon) * weight + bias
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float epsilon,
                     std::int64_t n, float* out);
  CacheKernels cache[kCacheFormats];  // by CacheFormat
  // Takes a partition's partial result into the task's out and statistics; partitions ascending.
  void (*attention_fold)(const AttentionTask& task, Position base, const float* partial);
  // Makes of these the result.
  void (*attention_finish)(const AttentionTask& task);
  // Rotates pairs (x, y) by an angle: x cos - y sin, x sin + y cos. Pair i is elements 2 i and
  // 2 i + 1, or i and i + pairs.
  void (*rotate_adjacent)(float* x, const float* cos, const float* sin, std::int64_t pairs);
  void (*rotate_halves)(float* x, const float* cos, const float* sin, std::int64_t pairs);
  // out = function(gate) * up
  void (*gate_silu)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*gate_gelu_tanh)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*gate_sigmoid)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*gate_clamped_swiglu)(const float* gate, const float* up, std::int64_t n, float* out);
  void (*multiply)(const float* a, const float* b, std::int64_t n, float* out);
  void (*softcap)(float* x, float cap, std::int64_t n);
  ActivateKernel silu, sigmoid, tanh, relu_squared, softplus, gelu;
  // y += a * x
  void (*scaled_add)(float a, const float* x, std::int64_t n, float* y);
  // out = e^(a * x)
  void (*exp_scaled)(float a, const float* x, std::int64_t n, float* out);
  float (*dot)(const float* a, const float* b, std::int64_t n);
  // A recurrent state's step: s = s * decay + u * b element by element; the dot product of s and c.
  float (*state_step)(float* s, const float* decay, float u, const float* b, const float* c,
                      std::int64_t n);
  // Only to measure with. A multiply-add counts as two operations.
  PeakKernel peak_int8, peak_f32;
  PeakKernel matmul_peak[kMaxFormats];  // the bare loop of the format's products
  // Likewise: reads `bytes`, a multiple of 256, in order and returns the OR of the words.
  std::uint32_t (*read_words)(const void* words, std::int64_t bytes);
};

// One exported symbol per ISA file.
extern const KernelTable kScalarKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvxVnniKernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kAvx512AmxKernels;  // for tiles alone; see with_tiles()
extern const KernelTable kNeonKernels;
extern const KernelTable kNeonDotprodKernels;
extern const KernelTable kNeonI8mmKernels;

}  // namespace strata
