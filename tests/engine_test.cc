// The engine as its callers see it: answers, forks, cancellation, limits and errors.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <future>
#include <mutex>
#include <span>

#include "tests/engine_fixture.h"

namespace strata {
namespace {

// Collects what a request hears and waits for its end.
class Collector : public Sink {
 public:
  explicit Collector(std::int32_t choices = 1)
      : tokens(static_cast<std::size_t>(choices)),
        reasons(tokens.size()),
        statuses(tokens.size()),
        open_(choices) {}

  void on_prompt(std::int32_t computed, std::int32_t total) override { EXPECT_LE(computed, total); }
  void on_logits(Position position, std::span<const float> row) override {
    positions.push_back(position);
    logits.emplace_back(row.begin(), row.end());
  }
  void on_token(std::int32_t choice, const ChosenToken& token) override {
    const std::lock_guard lock(mutex_);
    tokens.at(static_cast<std::size_t>(choice)).push_back(token.id);
    changed_.notify_all();
  }
  void on_finish(std::int32_t choice, FinishReason reason, const Status& status) override {
    const std::lock_guard lock(mutex_);
    reasons.at(static_cast<std::size_t>(choice)) = reason;
    statuses.at(static_cast<std::size_t>(choice)) = status;
    --open_;
    EXPECT_GE(open_, 0);
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0; });
  }
  void wait_for_tokens(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_ == 0 || tokens[0].size() >= count; });
  }

  std::vector<std::vector<TokenId>> tokens;
  std::vector<FinishReason> reasons;
  std::vector<Status> statuses;
  std::vector<Position> positions;
  std::vector<std::vector<float>> logits;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::int32_t open_;
};

class EngineTest : public testing::EngineFixture {
 protected:
  static std::shared_ptr<Collector> run(Engine& engine, Request request) {
    auto sink = std::make_shared<Collector>(request.choices);
    const auto id = engine.submit(std::move(request), sink);
    EXPECT_TRUE(id.ok()) << id.status().message();
    if (id.ok()) sink->wait();
    return sink;
  }
};

TEST_F(EngineTest, PlansTheCacheInItsFormat) {
  testing::TinyShape shape;
  shape.embedding = 64 * shape.heads;
  const auto f16 = load({}, shape)->plan(),
             coded = load({.cache = CacheFormat::kQ8_0}, shape)->plan();
  EXPECT_EQ(coded.context, f16.context);
  EXPECT_EQ(coded.cache * 64, f16.cache * 34);  // bytes of 32 elements
  const auto refused =
      Engine::load(folder_.path("tiny.gguf"), {.reference = true, .cache = CacheFormat::kQ8_0}, {});
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EngineTest, AnswersTheSameAloneAndInCompany) {
  auto engine = load({.sequences = 4, .step_rows = 24});
  std::vector<std::vector<TokenId>> alone;
  for (int i = 0; i < 12; ++i)
    alone.push_back(run(*engine, greedy(prompt(3 + 9 * i, i), 20))->tokens[0]);
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 12; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(engine->submit(greedy(prompt(3 + 9 * i, i), 20), sinks.back()).ok());
  }
  for (int i = 0; i < 12; ++i) {
    sinks[static_cast<std::size_t>(i)]->wait();
    EXPECT_EQ(sinks[static_cast<std::size_t>(i)]->tokens[0], alone[static_cast<std::size_t>(i)]);
    EXPECT_EQ(alone[static_cast<std::size_t>(i)].size(), 20u);
  }
}

TEST_F(EngineTest, SampledAnswersDependOnSeedAndChoiceNotOnTheBatch) {
  auto engine = load({.sequences = 8});
  Request request = greedy(prompt(40, 1), 16);
  request.sampling.temperature = 1.0f;
  request.sampling.seed = 7;
  request.choices = 5;
  const auto alone = run(*engine, request);
  auto noise = std::make_shared<Collector>();
  ASSERT_TRUE(engine->submit(greedy(prompt(100, 3), 100), noise).ok());
  const auto together = run(*engine, request);
  EXPECT_EQ(alone->tokens, together->tokens);
  EXPECT_NE(alone->tokens[0], alone->tokens[1]);
  Request first = request;
  first.choices = 1;
  EXPECT_EQ(run(*engine, first)->tokens[0], alone->tokens[0]);
  noise->wait();
}

TEST_F(EngineTest, ForkedGreedyChoicesAllGiveTheSingleAnswer) {
  auto engine = load({.sequences = 8});
  Request request = greedy(prompt(45, 2), 30);
  const auto single = run(*engine, request);
  request.choices = 4;
  const auto forked = run(*engine, request);
  for (const auto& tokens : forked->tokens) EXPECT_EQ(tokens, single->tokens[0]);
}

TEST_F(EngineTest, ChoicesOfAHybridModelShareItsFewStates) {
  testing::TinyShape shape;
  shape.hybrid = true;
  auto engine = load({.sequences = 1, .step_rows = 24}, shape);
  const auto alone = run(*engine, greedy(prompt(50, 2), 20));
  Request request = greedy(prompt(50, 2), 20);
  request.choices = 5;
  const auto forked = run(*engine, request);
  for (const auto& tokens : forked->tokens) EXPECT_EQ(tokens, alone->tokens[0]);
  EXPECT_EQ(alone->tokens[0].size(), 20u);
}

TEST_F(EngineTest, StopTokenEndsTheAnswerAndIsNotReported) {
  auto engine = load();
  Request request = greedy(prompt(10, 5), 30);
  const auto whole = run(*engine, request)->tokens[0];
  request.stop_tokens = {whole[6]};
  const auto first = std::ranges::find(whole, whole[6]) - whole.begin();
  for (const std::int32_t choices : {1, 3}) {
    request.choices = choices;
    const auto stopped = run(*engine, request);
    for (std::size_t i = 0; i < static_cast<std::size_t>(choices); ++i) {
      EXPECT_EQ(stopped->reasons[i], FinishReason::kStop);
      EXPECT_EQ(stopped->tokens[i], std::vector<TokenId>(whole.begin(), whole.begin() + first));
    }
  }
}

TEST_F(EngineTest, StopsWithAReasonWhenTheContextIsFull) {
  auto engine = load({.context = 64});
  const auto full = run(*engine, greedy(prompt(60, 1), -1));
  EXPECT_EQ(full->reasons[0], FinishReason::kContext);
  EXPECT_EQ(full->tokens[0].size(), 4u);
  EXPECT_EQ(run(*engine, greedy(prompt(60, 1), 2))->reasons[0], FinishReason::kLength);
}

TEST_F(EngineTest, DeliversLogitsOfTheAskedPositionsOnceAndInOrder) {
  auto engine = load({.step_rows = 16, .logit_rows = 4});
  Request request = greedy(prompt(50, 1), 0);
  for (Position p = 0; p < 50; ++p) request.logit_positions.push_back(p);
  const auto all = run(*engine, request);
  EXPECT_EQ(all->positions, request.logit_positions);
  EXPECT_EQ(all->reasons[0], FinishReason::kLength);
  EXPECT_TRUE(all->tokens[0].empty());
  request.logit_positions = {7, 49};
  const auto some = run(*engine, request);
  EXPECT_EQ(some->positions, request.logit_positions);
  EXPECT_EQ(some->logits[0], all->logits[7]);
  EXPECT_EQ(some->logits[1], all->logits[49]);
}

TEST_F(EngineTest, CancelEndsOneRequestAndNoOther) {
  auto engine = load({.context = 256, .sequences = 2});
  auto endless = std::make_shared<Collector>();
  auto other = std::make_shared<Collector>();
  const auto id = engine->submit(greedy(prompt(4, 1), -1), endless);
  ASSERT_TRUE(id.ok());
  ASSERT_TRUE(engine->submit(greedy(prompt(4, 2), 40), other).ok());
  endless->wait_for_tokens(3);
  engine->cancel(*id);
  engine->cancel(RequestId{12345});
  endless->wait();
  other->wait();
  EXPECT_EQ(other->reasons[0], FinishReason::kLength);
  EXPECT_EQ(other->tokens[0], run(*engine, greedy(prompt(4, 2), 40))->tokens[0]);
  const auto again = run(*engine, greedy(prompt(4, 1), 5));
  EXPECT_EQ(again->tokens[0].size(), 5u);
}

// Cancels one of its choices when that has three tokens.
class Leaver final : public Collector {
 public:
  Leaver(Engine& engine, std::int32_t choices, std::int32_t leaving)
      : Collector(choices), engine_(engine), leaving_(leaving) {}

  void on_token(std::int32_t choice, const ChosenToken& token) override {
    Collector::on_token(choice, token);
    if (choice == leaving_ && tokens[static_cast<std::size_t>(choice)].size() == 3)
      engine_.cancel(id.get_future().get(), choice);
  }

  std::promise<RequestId> id;

 private:
  Engine& engine_;
  const std::int32_t leaving_;
};

TEST_F(EngineTest, CancelEndsOneChoiceAndTheOthersGoOn) {
  constexpr int kTokens = 30;
  auto engine = load({.context = 256, .sequences = 3});
  Request request = greedy(prompt(20, 1), kTokens);
  request.sampling.temperature = 2;
  request.choices = 3;
  const auto all = run(*engine, request);
  for (std::int32_t leaving = 0; leaving < 3; ++leaving) {
    const std::int64_t before = engine->stats().generated;
    const auto sink = std::make_shared<Leaver>(*engine, 3, leaving);
    const auto id = engine->submit(request, sink);
    ASSERT_TRUE(id.ok());
    sink->id.set_value(*id);
    sink->wait();
    for (std::size_t i = 0; i < 3; ++i) {
      const bool left = static_cast<std::int32_t>(i) == leaving;
      EXPECT_EQ(sink->reasons[i], left ? FinishReason::kCancelled : FinishReason::kLength);
      EXPECT_EQ(sink->tokens[i].size(), left ? 3u : std::size_t{kTokens});
      EXPECT_TRUE(std::ranges::equal(sink->tokens[i],
                                     std::span(all->tokens[i]).first(sink->tokens[i].size())));
    }
    engine->cancel(*id, 0);                 // too late
    run(*engine, greedy(prompt(4, 2), 1));  // its counts are published by then
    EXPECT_LT(engine->stats().generated - before, 2 * kTokens + kTokens / 2);
  }
}

TEST_F(EngineTest, DestructionFinishesWhatIsLeftAsCancelled) {
  auto engine = load({.context = 256});
  auto running = std::make_shared<Collector>(3);
  Request request = greedy(prompt(4, 1), -1);
  request.choices = 3;
  ASSERT_TRUE(engine->submit(request, running).ok());
  engine.reset();
  running->wait();
  for (const FinishReason reason : running->reasons)
    EXPECT_TRUE(reason == FinishReason::kCancelled || reason == FinishReason::kContext);
}

TEST_F(EngineTest, ManyRequestsFinishInAScarceCache) {
  auto engine = load({.context = 128, .sequences = 1});
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 10; ++i) {
    sinks.push_back(std::make_shared<Collector>());
    ASSERT_TRUE(engine->submit(greedy(prompt(40, i), 60), sinks.back()).ok());
  }
  for (auto& sink : sinks) {
    sink->wait();
    EXPECT_EQ(sink->reasons[0], FinishReason::kLength);
  }
  EXPECT_GT(engine->stats().preemptions, 0);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(run(*engine, greedy(prompt(40, i), 60))->tokens[0],
              sinks[static_cast<std::size_t>(i)]->tokens[0]);
}

// Mirostat's draws depend on all that were made before, DRY's on all tokens.
TEST_F(EngineTest, StatefulSamplingSurvivesForksAndPreemption) {
  auto engine = load({.context = 128, .sequences = 1});
  const auto request = [](int i) {
    Request out = greedy(prompt(40, i), 40);
    out.sampling.temperature = 1.5f;
    out.sampling.mirostat = 2;
    out.sampling.mirostat_eta = 0.7f;
    out.sampling.mirostat_tau = 3;
    out.sampling.dry_multiplier = 0.8f;
    out.sampling.seed = static_cast<std::uint64_t>(i);
    return out;
  };
  std::vector<std::shared_ptr<Collector>> sinks;
  for (int i = 0; i < 8; ++i) {
    sinks.push_back(std::make_shared<Collector>(2));
    Request two = request(i);
    two.choices = 2;
    ASSERT_TRUE(engine->submit(two, sinks.back()).ok());
  }
  for (auto& sink : sinks) sink->wait();
  EXPECT_GT(engine->stats().preemptions, 0);
  for (int i = 0; i < 8; ++i) {
    const auto& tokens = sinks[static_cast<std::size_t>(i)]->tokens;
    EXPECT_EQ(run(*engine, request(i))->tokens[0], tokens[0]);
    EXPECT_NE(tokens[1], tokens[0]);
    Request two = request(i);
    two.choices = 2;
    EXPECT_EQ(run(*engine, two)->tokens[1], tokens[1]);
  }
}

TEST_F(EngineTest, RefusesBadRequestsNamingWhatIsWrong) {
  auto engine = load({.context = 64});
  const auto refusal = [&](const Request& request) {
    const auto id = engine->submit(request, std::make_shared<Collector>(1));
    EXPECT_FALSE(id.ok());
    return id.status().message();
  };
  EXPECT_NE(refusal(greedy({}, 5)).find("empty"), std::string::npos);
  EXPECT_NE(refusal(greedy(prompt(64, 1), 5)).find("64 tokens"), std::string::npos);
  EXPECT_NE(refusal(greedy({1, 96}, 5)).find("token 96"), std::string::npos);
  EXPECT_NE(refusal(greedy({1, -1}, 5)).find("token -1"), std::string::npos);
  Request request = greedy({1, 2, 3}, 0);
  request.logit_positions = {0, 3};
  EXPECT_NE(refusal(request).find("position 3"), std::string::npos);
  request.logit_positions = {1, 1};
  EXPECT_NE(refusal(request).find("position 1"), std::string::npos);
  request = greedy({1}, 1);
  request.choices = 0;
  EXPECT_NE(refusal(request).find("choices"), std::string::npos);
  request = greedy({1}, 1);
  request.sampling.top_p = std::nanf("");
  EXPECT_NE(refusal(request).find("top_p"), std::string::npos);
}

TEST_F(EngineTest, WeightsThatAreNotNumbersFailTheRequestAndNotTheEngine) {
  auto engine = load({}, {.with_nan = true});
  Request request = greedy(prompt(8, 1), 4);
  request.choices = 2;
  for (int round = 0; round < 2; ++round) {
    const auto sink = run(*engine, request);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(sink->reasons[i], FinishReason::kError);
      EXPECT_FALSE(sink->statuses[i].ok());
    }
  }
}

TEST_F(EngineTest, RefusesABudgetThatCannotHoldTheModelWithNumbers) {
  const std::string path = folder_.path("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_model(path, {}).ok());
  const auto engine = Engine::load(path, {.threads = 1, .memory = kMiB}, {});
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(engine.status().message().find("weights"), std::string::npos);
  EXPECT_NE(engine.status().message().find("1.0 MiB"), std::string::npos);
}

TEST_F(EngineTest, LoadStopsWhenProgressSaysSo) {
  const std::string path = folder_.path("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_model(path, {}).ok());
  const auto engine = Engine::load(path, {.threads = 1}, [](Bytes, Bytes) { return false; });
  ASSERT_FALSE(engine.ok());
  EXPECT_EQ(engine.status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace strata
