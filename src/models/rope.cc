#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/math.h"

namespace strata {
namespace {

Result<double> positive(const ModelManifest& manifest, std::string_view key, double fallback) {
  STRATA_ASSIGN(const double value, manifest.real_or(key, fallback));
  if (value <= 0) return corrupt("{} is {}; it must be positive", manifest.full_key(key), value);
  return value;
}

Result<double> read_scale(const ModelManifest& manifest, std::string_view type) {
  STRATA_ASSIGN(double factor, manifest.real_or("rope.scaling.factor", 0));
  if (factor == 0) {
    STRATA_ASSIGN(factor, manifest.real_or("rope.scale_linear", 0));
  }
  if (factor == 0 || type == "none") return 1.0;
  if (factor < 0)
    return corrupt("{} is {}; it must be positive", manifest.full_key("rope.scaling.factor"),
                   factor);
  return 1.0 / factor;
}

// The pair of dimensions that turns `turns` times within the original context.
double turning_pair(const RopeParams& p, double turns) {
  return p.dimensions * log_f64(p.original_context / (turns * 2 * std::numbers::pi)) /
         (2 * log_f64(p.base));
}

}  // namespace

double yarn_magnitude(double factor, double multiplier) {
  return factor <= 1 ? 1.0 : 0.1 * multiplier * log_f64(factor) + 1.0;
}

Result<RopeParams> read_rope(const ModelManifest& manifest, std::int32_t dimensions,
                             std::int32_t context) {
  RopeParams p;
  p.dimensions = dimensions;
  STRATA_ASSIGN(const std::string type, manifest.string_or("rope.scaling.type", "linear"));
  if (type != "none" && type != "linear" && type != "yarn" && type != "longrope")
    return unsupported("{}: rope scaling '{}' is not supported (none, linear, yarn, longrope are)",
                       manifest.full_key("rope.scaling.type"), type);
  STRATA_ASSIGN(p.base, positive(manifest, "rope.freq_base", 10000.0));
  STRATA_ASSIGN(p.scale, read_scale(manifest, type));
  STRATA_ASSIGN(const auto original,
                manifest.integer_or("rope.scaling.original_context_length", context, 1, 1 << 30));
  p.original_context = static_cast<std::int32_t>(original);
  STRATA_ASSIGN(p.beta_fast, positive(manifest, "rope.scaling.yarn_beta_fast", 32.0));
  STRATA_ASSIGN(p.beta_slow, positive(manifest, "rope.scaling.yarn_beta_slow", 1.0));
  STRATA_ASSIGN(const double strength, manifest.real_or("rope.scaling.yarn_ext_factor", -1));
  p.yarn_strength = strength >= 0 ? strength : type == "yarn" ? 1.0 : 0.0;
  if (p.yarn_strength != 0) {
    if (p.base <= 1)
      return corrupt("{} is {}; with YaRN it must be larger than 1",
                     manifest.full_key("rope.freq_base"), p.base);
    p.magnitude = yarn_magnitude(1.0 / p.scale, 1.0);
  } else {
    STRATA_ASSIGN(p.magnitude, positive(manifest, "rope.scaling.yarn_attn_factor", 1.0));
  }
  STRATA_ASSIGN(const double factor, positive(manifest, "rope.scaling.attn_factor", 1.0));
  p.magnitude *= factor;
  return p;
}

RopeTableOp rope_table_op(const RopeParams& p) {
  RopeTableOp op;
  op.dimensions = p.dimensions;
  op.base = p.base;
  op.scale = p.scale;
  op.magnitude = p.magnitude;
  op.original_context = p.original_context;
  if (p.yarn_strength != 0)
    op.yarn = {std::max(0.0, std::floor(turning_pair(p, p.beta_fast))),
               std::min(p.dimensions - 1.0, std::ceil(turning_pair(p, p.beta_slow))),
               p.yarn_strength};
  return op;
}

}  // namespace strata
