// The choice of experts.
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/math.h"
#include "device/cpu/cpu_segment.h"

namespace strata {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallestSum = 0x1p-14f;  // that weights are divided by

void softmax(float* x, std::int32_t n) {
  const float top = *std::max_element(x, x + n);
  float sum = 0;
  for (std::int32_t i = 0; i < n; ++i) sum += x[i] = exp_f32(x[i] - top);
  for (std::int32_t i = 0; i < n; ++i) x[i] /= sum;
}

// Strictly greater: of equal ones the first is taken.
std::int32_t largest(const float* x, std::int32_t n) {
  std::int32_t best = 0;
  for (std::int32_t i = 1; i < n; ++i)
    if (x[i] > x[best]) best = i;
  return best;
}

// Takes the experts of all but the best groups out of the choice. `scratch` holds groups + group
// size elements.
void drop_groups(const RouteOp& op, float* selection, float* scratch) {
  const std::int32_t members = op.experts / op.groups;
  float* scores = scratch;
  float* rest = scratch + op.groups;
  for (std::int32_t g = 0; g < op.groups; ++g) {
    std::copy(selection + g * members, selection + (g + 1) * members, rest);
    scores[g] = 0;
    for (std::int32_t i = 0; i < op.group_best; ++i) {
      const std::int32_t best = largest(rest, members);
      scores[g] += rest[best];
      rest[best] = -kInfinity;
    }
  }
  for (std::int32_t dropped = op.groups_used; dropped < op.groups; ++dropped) {
    std::int32_t worst = 0;
    for (std::int32_t g = 1; g < op.groups; ++g)
      if (scores[g] <= scores[worst]) worst = g;
    std::fill(selection + worst * members, selection + (worst + 1) * members, -kInfinity);
    scores[worst] = kInfinity;
  }
}

void weigh(const RouteOp& op, float* weights) {
  if (op.function == RouteFunction::kSoftmaxOfChosen) softmax(weights, op.used);
  if (op.renormalize) {
    float sum = 0;
    for (std::int32_t rank = 0; rank < op.used; ++rank) sum += weights[rank];
    for (std::int32_t rank = 0; rank < op.used; ++rank)
      weights[rank] /= std::max(sum, kSmallestSum);
  }
  for (std::int32_t rank = 0; rank < op.used; ++rank) weights[rank] *= op.scale;
}

}  // namespace

void OpRunner::apply(const RouteOp& op) {
  const Rows scores = rows(op.scores);
  const Rows ids = rows(op.ids);
  const Rows weights = rows(op.weights);
  const float* bias = op.bias ? vector(*op.bias) : nullptr;
  float* selection = scratch_.floats.data();
  each_row(scores.count, [&](std::int64_t i) {
    float* p = scores.row(i);
    if (op.function == RouteFunction::kSoftmax) softmax(p, op.experts);
    if (op.function == RouteFunction::kSigmoid)
      for (std::int32_t e = 0; e < op.experts; ++e) p[e] = 1.0f / (1.0f + exp_f32(-p[e]));
    for (std::int32_t e = 0; e < op.experts; ++e)
      selection[e] = bias == nullptr ? p[e] : p[e] + bias[e];
    if (op.groups > 1) drop_groups(op, selection, selection + op.experts);
    for (std::int32_t rank = 0; rank < op.used; ++rank) {
      const std::int32_t best = largest(selection, op.experts);
      selection[best] = -kInfinity;
      std::memcpy(ids.row(i) + rank, &best, sizeof best);
      weights.row(i)[rank] = p[best];
    }
    weigh(op, weights.row(i));
  });
}

}  // namespace strata
