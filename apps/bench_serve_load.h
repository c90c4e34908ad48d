// Loads of many requests that know nothing of each other: so many users, or so many a second.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "bench_serve_prompts.h"
#include "bench_serve_request.h"

namespace strata::apps {

struct LoadOptions {
  std::int32_t users = 8;     // each asks again when it is answered
  double rate = 0;            // > 0: requests per second instead, with random gaps (Poisson)
  std::int32_t requests = 0;  // 0: no limit
  double seconds = 0;         // of new requests; 0: no limit
  LengthDistribution prompt;
  LengthDistribution answer;
  std::int32_t shared_prefix = 0;  // tokens that all prompts begin with
  std::int32_t distinct = 0;       // prompts; 0: every one is another
  std::int32_t burst = 0;          // prompts that come at once beside the users
  double burst_after = 5;          // s
  LengthDistribution burst_prompt;
  LengthDistribution burst_answer;
  std::uint64_t seed = 1;
};

// When the burst came and was over: s since the load began.
struct BurstTimes {
  double start = 0;
  double all_started = 0;  // every one of it had text
  double end = 0;
};

struct LoadResult {
  std::vector<ServeRecord> records;
  std::optional<BurstTimes> burst;
};

// Asks, and returns when the last answer is there.
LoadResult run_load(ServeAsker& asker, const WordList& words, const LoadOptions& options);

}  // namespace strata::apps
