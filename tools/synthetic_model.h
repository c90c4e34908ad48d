// Models of any size with random weights, in files that other programs read too: for measuring
// speed without fetching gigabytes. What they say has no meaning.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace strata {

struct SyntheticShape {
  std::string architecture = "llama";  // or qwen3moe, whose feed-forwards are experts
  std::int64_t dim = 2048;
  std::int64_t layers = 16;
  std::int64_t heads = 32;
  std::int64_t kv_heads = 8;
  std::int64_t head_size = 0;  // 0: dim / heads
  std::int64_t feed_forward = 8192;
  std::int64_t vocabulary = 32000;
  std::int64_t experts = 0;
  std::int64_t experts_used = 0;
  std::int64_t expert_feed_forward = 0;
  std::int64_t context = 32768;
};

// The shape called `1b`, `8b` (that of Llama 3 8B) or `moe`.
Result<SyntheticShape> synthetic_preset(std::string_view name);

// Writes the model to `path`. `format` is one of Strata's formats, in which all matrices are then,
// or q4_k_m: Q4_K with some matrices in Q6_K, chosen as llama.cpp's quantizer chooses them. The
// bytes depend on the arguments alone, and never wait in memory as a whole. Once `stopped` says so
// it fails with kCancelled and leaves nothing.
Status write_synthetic_model(const SyntheticShape& shape, std::string_view format,
                             std::uint64_t seed, const std::string& path,
                             const std::function<bool()>& stopped = {});

}  // namespace strata
