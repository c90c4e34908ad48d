#include "device/device.h"

namespace strata {

Bytes state_layer_bytes(const CacheSpec& spec) {
  return round_up<Bytes>(static_cast<Bytes>(spec.state_size) * sizeof(float), 64);
}

std::string_view to_string(CacheFormat format) {
  switch (format) {
    case CacheFormat::kF32: return "f32";
    case CacheFormat::kF16: return "f16";
    case CacheFormat::kQ8_0: return "q8_0";
  }
  return "unknown";
}

std::optional<CacheFormat> cache_format_by_name(std::string_view name) {
  for (const auto format : {CacheFormat::kF32, CacheFormat::kF16, CacheFormat::kQ8_0})
    if (name == to_string(format)) return format;
  return std::nullopt;
}

Bytes cache_vector_bytes(std::int32_t elements, CacheFormat format) {
  const auto padded = round_up<Bytes>(static_cast<Bytes>(elements), 8);
  if (format == CacheFormat::kQ8_0) return padded + 2 * ceil_div<Bytes>(padded, 32);
  return padded * (format == CacheFormat::kF32 ? 4 : 2);
}

Bytes cache_block_bytes(const CacheGroupSpec& group, CacheFormat format) {
  if (group.spec.state_size > 0)
    return static_cast<Bytes>(group.layers) * state_layer_bytes(group.spec);
  const Bytes per_token = cache_vector_bytes(group.spec.key_size, format) +
                          cache_vector_bytes(group.spec.value_size, format);
  return static_cast<Bytes>(group.layers) * static_cast<Bytes>(group.spec.kv_heads) * kBlockTokens *
         per_token;
}

Status check_step(const Graph& graph, const StepLimits& limits, const StepInputs& inputs) {
  const auto rows = static_cast<std::int64_t>(inputs.tokens.size());
  if (rows > limits.rows || static_cast<std::int64_t>(inputs.logit_rows.size()) > limits.logit_rows)
    return internal_error("a step of {} rows, {} with logits, exceeds the bound {} and {}", rows,
                          inputs.logit_rows.size(), limits.rows, limits.logit_rows);
  for (const TokenId token : inputs.tokens)
    if (token < 0 || token >= graph.vocabulary)
      return invalid_argument("token {} is outside the vocabulary of {}", token, graph.vocabulary);
  for (const StepSlice& slice : inputs.slices) {
    const std::int64_t end = std::int64_t{slice.first} + slice.rows;
    if (graph.max_positions > 0 && end > graph.max_positions)
      return invalid_argument("position {} is beyond the {} that the model has embeddings for",
                              end - 1, graph.max_positions);
    if (!graph.causal && slice.first != 0)
      return internal_error("rows from {} on lack those before them, which they see", slice.first);
  }
  return {};
}

}  // namespace strata
