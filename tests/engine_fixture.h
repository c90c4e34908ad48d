// An engine over a tiny model, and what is asked of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "tests/model_fixture.h"

namespace strata::testing {

class EngineFixture : public ::testing::Test {
 protected:
  // Null, with a failure of the test, where it does not load. Two threads, unless told.
  std::unique_ptr<Engine> load(EngineOptions options = {}, const TinyShape& shape = {}) {
    const std::string path = folder_.path("tiny.gguf");
    EXPECT_TRUE(write_tiny_model(path, shape).ok());
    if (options.threads == 0) options.threads = 2;
    auto engine = Engine::load(path, options, {});
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return engine.ok() ? std::move(engine).value() : nullptr;
  }

  static Request greedy(std::vector<TokenId> tokens, std::int32_t max_tokens) {
    Request request;
    request.tokens = std::move(tokens);
    request.sampling.temperature = 0;
    request.max_tokens = max_tokens;
    return request;
  }

  static std::vector<TokenId> prompt(int length, int seed) {
    std::vector<TokenId> tokens;
    for (int i = 0; i < length; ++i) tokens.push_back((i * 37 + seed * 11 + i * i % 7) % 96);
    return tokens;
  }

  TemporaryFolder folder_;
};

}  // namespace strata::testing
