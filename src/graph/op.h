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

// out[row] = scale * table[index(row)]
enum class EmbedIndex : std::uint8_t {
  kToken,
  kPosition,  // the table has a row for every position a sequence may have
  kZero,
};
struct EmbedOp {
  WeightId table;
  ValueId out;
  float scale = 1.0f;
  EmbedIndex index = EmbedIndex::kToken;
};

// RMS norm over each of `heads` equal parts of a row: x / sqrt(mean(x^2) + epsilon) * weight, where
// weight has width / heads elements for all parts, or width elements; without one, each is 1. With
// a bias (of as many) a layer norm: mean(x) is first taken from x, and the bias is added in the
// end.
struct NormOp {
  ValueId in;
  ValueId out;  // may be `in`
  std::optional<WeightId> weight;
  float epsilon = 0;
  std::int32_t heads = 1;
  std::optional<WeightId> bias;
};

// out = in * weight^T (* scale) (+ bias) for each projection. Projections share the input's
// quantized form. `scale` holds one factor per slice of the weight.
struct Projection {
  WeightId weight;
  std::optional<WeightId> bias;  // one slice per slice of the weight
  ValueId out;
  std::optional<WeightId> scale = std::nullopt;
};
// With `parts` > 1 a row is that many equal parts, and part p of the input times slice p of the
// weight gives part p of the output.
struct MatMulOp {
  ValueId in;
  std::vector<Projection> projections;
  std::int32_t parts = 1;
};

// Part p of out is, one after the other, elements [offset, offset + width) of part p of each piece,
// whose parts start `stride` elements apart; with stride 0 every part reads the same elements.
struct ConcatPiece {
  ValueId in;
  std::int32_t stride = 0;
  std::int32_t offset = 0;
  std::int32_t width = 0;
};
struct ConcatOp {
  std::vector<ConcatPiece> pieces;
  ValueId out;
  std::int32_t parts = 1;
};

// The part of YaRN (Peng et al. 2023) that keeps the frequency of a pair i of dimensions:
// strength * (1 - clamp((i - low) / max(high - low, 0.001), 0, 1))
struct YarnRamp {
  double low = 0;
  double high = 0;
  double strength = 1.0;
};

// magnitude * cos and sin of position(row) * frequency[i] for i < dimensions / 2: first every cos,
// then every sin. frequency[i] = base^(-2 i / dimensions) / factors[i] * (scale + (1 - scale) *
// kept[i]), where kept[i] is the ramp's, or 0 without one.
struct RopeTableOp {
  ValueId out;
  std::int32_t dimensions = 0;  // rotated elements of a head; even
  double base = 10000.0;
  double scale = 1.0;  // 1 / factor of the context's extension
  std::optional<YarnRamp> yarn;
  double magnitude = 1.0;
  std::optional<WeightId> factors;       // dimensions / 2 divisors
  std::optional<WeightId> long_factors;  // instead, where the segment's context exceeds:
  std::int32_t original_context = 0;
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
// (p - window, p] of its sequence, or all up to p where window is 0. Without `causal` it sees all
// of its sequence, which the step brings whole. A head's sink is a score that joins the softmax and
// carries no value.
struct AttentionOp {
  ValueId query;  // width heads * head_size
  ValueId key;    // width kv_heads * head_size
  ValueId value;  // width kv_heads * value_size; invalid: the first elements of each key
  ValueId out;    // width heads * value_size
  std::optional<WeightId> sinks;  // `heads` elements
  std::int32_t cache_group = 0;
  std::int32_t cache_layer = 0;  // index within the group
  std::int32_t heads = 0;
  std::int32_t kv_heads = 0;
  std::int32_t head_size = 0;
  std::int32_t value_size = 0;
  std::int32_t window = 0;
  bool causal = true;
  float scale = 1.0f;
  float softcap = 0;  // scores become softcap * tanh(score / softcap); 0: unchanged
};

struct AddOp {
  ValueId a;
  ValueId b;
  ValueId out;  // may be `a` or `b`
};

// x = factor * x, in place
struct ScaleOp {
  ValueId value;
  float factor = 1.0f;
};

enum class GateFunction : std::uint8_t {
  kSilu,
  kGeluTanh,
  kSigmoid,
  kIdentity,
  kClampedSwiglu,  // g sigmoid(1.702 g) with g = min(gate, 7), times clamp(up, -7, 7) + 1
};
// out = function(gate) * up. A gate of width 1 serves its whole row.
struct GateOp {
  ValueId gate;
  ValueId up;
  ValueId out;  // may be `gate` or `up`
  GateFunction function = GateFunction::kSilu;
};

enum class UnaryFunction : std::uint8_t {
  kSilu,
  kSigmoid,
  kTanh,
  kReluSquared,
  kSoftplus,
  kGelu,  // x * (1 + erf(x / sqrt(2))) / 2
};
// x = function(x + bias), in place; without a bias: function(x)
struct ActivateOp {
  ValueId value;
  UnaryFunction function = UnaryFunction::kSilu;
  std::optional<WeightId> bias;
};

// --- Recurrent layers ---
// Their rows are computed one by one in the order of positions, each from the state that the one
// before it left; before position 0 a state is all zeros.

// Where a layer keeps its state.
struct StateSlot {
  std::int32_t cache_group = 0;
  std::int32_t cache_layer = 0;  // index within the group
};

// Causal convolution of every channel c by itself: out[p][c] = sum over taps t < kernel of
// weight[c][t] * in[p - kernel + 1 + t][c], taps ascending, + bias[c]. The state holds the last
// kernel - 1 inputs, oldest first.
struct ShortConvOp {
  ValueId in;
  ValueId out;
  WeightId weight;  // `kernel` elements per channel
  std::optional<WeightId> bias;
  std::int32_t kernel = 0;
  StateSlot slot;
};

// Selective state space: Gu and Dao, "Mamba" (2023), where a head is a channel, and Dao and Gu,
// "Transformers are SSMs" (2024). Channel i of head h has a state s of state_size elements:
//   s[n] = exp(dt[h] * a[h][n]) * s[n] + dt[h] * x[h][i] * b[g][n]
//   out[h][i] = sum over n of s[n] * c[g][n], + d[h] * x[h][i]
// with g = h / (heads / groups).
struct SsmScanOp {
  ValueId x;   // width heads * head_size
  ValueId dt;  // width heads
  ValueId b;   // width groups * state_size
  ValueId c;   // width groups * state_size
  ValueId out;
  WeightId a;  // heads * state_size elements, or one per head that serves every n
  WeightId d;  // heads elements
  std::int32_t heads = 0;
  std::int32_t head_size = 0;
  std::int32_t state_size = 0;
  std::int32_t groups = 1;
  StateSlot slot;
};

// Gated delta rule: Yang, Kautz and Hatamizadeh, "Gated Delta Networks" (2024). Value head h has a
// state S of value_size rows of key_size elements, and key head h / (value_heads / key_heads):
//   q = query / |query| / sqrt(key_size), k = key / |key|, with |x| = sqrt(sum(x^2) + epsilon)
//   S = exp(a[h] * dt[h]) * S
//   S = S + beta[h] * (value - S k) k^T
//   out = S q
struct GatedDeltaOp {
  ValueId query;  // width key_heads * key_size
  ValueId key;    // likewise
  ValueId value;  // width value_heads * value_size
  ValueId dt;     // width value_heads
  ValueId beta;   // likewise
  ValueId out;
  WeightId a;  // value_heads elements
  std::int32_t key_heads = 0;
  std::int32_t value_heads = 0;
  std::int32_t key_size = 0;
  std::int32_t value_size = 0;
  float epsilon = 0;
  StateSlot slot;
};

// out = a + (b - a) * share, element by element
struct LerpOp {
  ValueId a;
  ValueId b;
  ValueId share;
  ValueId out;  // may be any of the others
};

// outs[i] = in + (previous - in) * weight[i], where previous is the input of the position before,
// which is also the state.
struct TokenShiftOp {
  ValueId in;
  std::vector<ValueId> outs;
  WeightId weight;  // outs.size() * width elements
  StateSlot slot;
};

// Peng et al., "RWKV-7 Goose" (2025). A head has a state S of head_size rows of head_size elements:
//   kk = key * removal, divided by its norm sqrt(sum(kk^2)), or by 1e-12 where that is larger
//   k = key * (1 + (rate - 1) * replacement)
//   S = S diag(exp(-e^-0.5 * decay)) - (S kk) (kk * rate)^T + value k^T
//   out = S receptance
//   bonus = value * sum(receptance * k * bonus_weight)
// All values have the width heads * head_size, the weights as many elements.
struct Rwkv7Op {
  ValueId receptance;
  ValueId decay;
  ValueId key;
  ValueId value;
  ValueId rate;
  ValueId out;
  ValueId bonus;
  WeightId removal;
  WeightId replacement;
  WeightId bonus_weight;
  std::int32_t heads = 0;
  StateSlot slot;
};

// What turns the router's scores into the experts' probabilities.
enum class RouteFunction : std::uint8_t {
  kSoftmax,
  kSigmoid,
  kSoftmaxOfChosen,  // scores choose, and the softmax is over the chosen alone
};

// Picks the `used` experts of largest probability plus bias, ties to the lower expert id. With
// `groups` > 1 the experts are that many equal runs, and only the `groups_used` runs of largest
// score compete; a run's score is the sum of its `group_best` best. ids holds int32 bits, weights
// the probabilities (without bias), divided by the larger of their sum and 2^-14 where
// `renormalize` is set, times `scale`; both by rank, best first.
struct RouteOp {
  ValueId scores;                // width experts
  ValueId ids;                   // width used
  ValueId weights;               // width used
  std::optional<WeightId> bias;  // `experts` elements
  std::int32_t experts = 0;
  std::int32_t used = 0;
  RouteFunction function = RouteFunction::kSoftmax;
  bool renormalize = true;
  float scale = 1.0f;
  std::int32_t groups = 1;
  std::int32_t groups_used = 1;
  std::int32_t group_best = 1;
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

using Op =
    std::variant<EmbedOp, NormOp, MatMulOp, ConcatOp, RopeTableOp, RopeOp, AttentionOp, AddOp,
                 ScaleOp, GateOp, RouteOp, ExpertMatMulOp, CombineOp, SelectLogitRowsOp, SoftcapOp,
                 ActivateOp, ShortConvOp, SsmScanOp, GatedDeltaOp, LerpOp, TokenShiftOp, Rwkv7Op>;

}  // namespace strata
