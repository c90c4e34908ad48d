// Conversations of agents: a long prompt, many turns that each add to it, and what befalls them.
#pragma once

#include <cstdint>
#include <vector>

#include "bench_serve_prompts.h"
#include "bench_serve_request.h"

namespace strata::apps {

struct TraceOptions {
  std::int32_t agents = 1;
  std::int32_t prompt = 30'000;    // tokens that a conversation begins with
  std::int32_t shared_prefix = 0;  // of these, the same for all agents
  std::int32_t turns = 20;
  std::int32_t turn_tokens = 200;  // that every turn adds besides its answer
  LengthDistribution answer;
  std::uint64_t seed = 1;
};

// A conversation goes on from turn to turn. Every fifth turn a side call runs beside it; half way a
// client goes while it is answered and asks again; after three quarters the agent starts over from
// its first prompt. Groups are "turn 1" and so on, "side call", "disconnect" and "restart".
std::vector<ServeRecord> run_trace(ServeAsker& asker, const WordList& words,
                                   const TraceOptions& options);

}  // namespace strata::apps
