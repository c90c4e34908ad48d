// The layer structure that Qwen2, Qwen3 and their mixtures share.
#pragma once

#include "models/blocks.h"

namespace strata {

struct QwenVariant {
  QueryKeyNorm norm = QueryKeyNorm::kNone;
  bool experts = false;
  bool renormalize = true;     // the chosen experts' weights
  bool shared_expert = false;  // behind a sigmoid gate
};

Result<Graph> build_qwen(const ModelManifest& manifest, QwenVariant variant);

// Width of the feed-forward that every token passes besides its experts.
Result<std::int64_t> read_shared_width(const ModelManifest& manifest,
                                       const TransformerParams& params);

// That feed-forward, times the sigmoid of one number.
ValueId gated_shared_expert(ModelBuilder& model, const TransformerParams& params,
                            std::int32_t layer, ValueId normed, std::int64_t width);

}  // namespace strata
