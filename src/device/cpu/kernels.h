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

// Attention of the query heads that share one key/value head, for one row.
struct AttentionTask {
  const float* query;  // query_heads x head_size
  std::int32_t query_heads;
  std::int32_t head_size;
  std::int32_t value_size;
  const std::uint8_t* cache;  // block 0's keys of this layer and key/value head
  const BlockId* table;
  std::uint64_t block_bytes;
  std::uint64_t value_offset;  // from a block's keys to its values
  Position first;              // visible positions, inclusive
  Position last;
  float scale;
  float softcap;
  float* scratch;                // attention_scratch(...) floats
  float* out;                    // query_heads x value_size
  const float* sinks = nullptr;  // query_heads scores without a value, or none
  bool values_in_keys = false;   // values are the first value_size elements of the keys
};
using AttentionKernel = void (*)(const AttentionTask& task);

constexpr std::int32_t kAttentionPartition = 256;  // absolute positions of a partial result
constexpr std::int32_t kUnitHeads = 8;             // most query heads of a task

// Always inlined, since kernels of every ISA call it: a copy of its own might be made of any ISA.
[[gnu::always_inline]] constexpr std::int64_t padded_value_size(std::int64_t value_size) {
  return (value_size + 7) / 8 * 8;
}
constexpr std::int64_t attention_scratch(std::int64_t query_heads, std::int64_t value_size) {
  return query_heads * (kAttentionPartition + padded_value_size(value_size) + 4);
}

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
  AttentionKernel attention_f32;
  AttentionKernel attention_f16;
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
};

// One exported symbol per ISA file.
extern const KernelTable kScalarKernels;
extern const KernelTable kAvx2Kernels;

}  // namespace strata
