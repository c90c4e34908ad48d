// Runs the tests of `strata bench` through an engine, as its users do.
#pragma once

#include "bench_result.h"
#include "engine/engine.h"

namespace strata::apps {

// Tokens a sequence of the test may come to have, with `step_rows` rows a step.
std::int32_t context_of(const BenchTest& test, std::int32_t step_rows);

class BenchRunner {
 public:
  // Random prompts come from `seed`, and none comes twice. The engine must outlive the runner.
  BenchRunner(Engine& engine, WorkCounter work, std::uint64_t seed)
      : engine_(engine), work_(std::move(work)), seed_(seed) {}

  Result<Sample> measure(const BenchTest& test);

 private:
  Request request(const BenchTest& test);
  Work work_of_prompt(const BenchTest& test) const;

  Engine& engine_;
  const WorkCounter work_;
  const std::uint64_t seed_;
  std::uint32_t prompts_ = 0;  // made so far
};

}  // namespace strata::apps
