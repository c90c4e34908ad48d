// The closed kit of operations a model is built from. Operations are data: a device interprets
// them, an architecture's file lists them.
//
// A value is a matrix of f32 with one row per entry of its row domain and a fixed width.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "base/units.h"

namespace strata {

using ValueId = StrongId<struct ValueTag>;
using WeightId = StrongId<struct WeightTag>;

// What a value has one row for.
enum class RowDomain : std::uint8_t {
  kTokens,  // every row of the step
  kRouted,  // every (row, rank) pair of a mixture of experts: row * experts_used + rank
  kLogits,  // the rows whose logits are wanted, in step order
};

// out[row] = scale * table[token(row)]
struct EmbedOp {
  WeightId table;
  ValueId out;
  float scale = 1.0f;
};

// RMS norm over each of `heads` equal parts of a row: x / sqrt(mean(x^2) + epsilon) * weight, where
// weight has width / heads elements.
struct NormOp {
  ValueId in;
  ValueId out;  // may be `in`
  WeightId weight;
  float epsilon = 0;
  std::int32_t heads = 1;
};

// out = in * weight^T (* scale) (+ bias) for each projection. Projections share the input's
// quantized form. `scale` holds one factor per slice of the weight.
struct Projection {
  WeightId weight;
  std::optional<WeightId> bias;
  ValueId out;
  std::optional<WeightId> scale;
};
struct MatMulOp {
  ValueId in;
  std::vector<Projection> projections;
};

// cos and sin of position(row) * frequency[i] for i < dimensions / 2: first every cos, then every
// sin. frequency[i] = base^(-2 i / dimensions) * scale / factors[i]
struct RopeTableOp {
  ValueId out;
  std::int32_t dimensions = 0;  // rotated elements of a head; even
  double base = 10000.0;
  double scale = 1.0;               // 1 / factor of linear scaling
  std::optional<WeightId> factors;  // dimensions / 2 divisors
};

enum class RopeStyle : std::uint8_t {
  kAdjacent,  // rotates elements 2 i and 2 i + 1
  kHalves,    // rotates elements i and i + dimensions / 2
};
struct RopeOp {
  ValueId table;
  ValueId value;  // rotated in place
  std::int32_t heads = 0;
  std::int32_t dimensions = 0;  // the first elements of each head; the others stay
  RopeStyle style = RopeStyle::kHalves;
};

// Writes k and v of every row into the cache, then attends: row at position p sees the positions
// (p - window, p] of its sequence, or all up to p where window is 0.
struct AttentionOp {
  ValueId query;  // width heads * head_size
  ValueId key;    // width kv_heads * head_size
  ValueId value;  // width kv_heads * value_size
  ValueId out;    // width heads * value_size
  std::int32_t cache_group = 0;
  std::int32_t cache_layer = 0;  // index within the group
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_size = 0;
  std::int32_t value_size = 0;
  std::int32_t window = 0;
  float scale = 1.0f;
  float softcap = 0;  // scores become softcap * tanh(score / softcap); 0: unchanged
};

struct AddOp {
  ValueId a;
  ValueId b;
  ValueId out;  // may be `a` or `b`
};

enum class GateFunction : std::uint8_t { kSilu, kGeluTanh };
// out = function(gate) * up
struct GateOp {
  ValueId gate;
  ValueId up;
  ValueId out;  // may be `gate` or `up`
  GateFunction function = GateFunction::kSilu;
};

// Picks the `used` experts of largest softmax(scores); ties go to the lower expert id. ids holds
// int32 bits, weights the probabilities, divided by their sum where `renormalize` is set; both by
// rank, best first.
struct RouteOp {
  ValueId scores;   // width experts
  ValueId ids;      // width used
  ValueId weights;  // width used
  std::int32_t experts = 0;
  std::int32_t used = 0;
  bool renormalize = true;
};

// As MatMulOp with weights that have one slice per expert. `in` has one row per token (each rank
// reads its token's row) or per (token, rank); outputs have one row per (token, rank).
struct ExpertMatMulOp {
  ValueId in;
  ValueId ids;
  std::vector<Projection> projections;
  std::int32_t used = 0;
};

// out[row] = sum over ranks of weights[row][rank] * in[row * used + rank], ranks ascending
struct CombineOp {
  ValueId in;
  ValueId weights;
  ValueId out;
  std::int32_t used = 0;
};

// The rows of a token value whose logits are wanted.
struct SelectLogitRowsOp {
  ValueId in;
  ValueId out;
};

// x = cap * tanh(x / cap), in place
struct SoftcapOp {
  ValueId value;
  float cap = 0;
};

using Op = std::variant<EmbedOp, NormOp, MatMulOp, RopeTableOp, RopeOp, AttentionOp, AddOp, GateOp,
                        RouteOp, ExpertMatMulOp, CombineOp, SelectLogitRowsOp, SoftcapOp>;

}  // namespace strata
