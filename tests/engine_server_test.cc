// What a server needs of the engine: shared prefixes, constraints, log-probabilities, a bounded
// queue and priorities.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <thread>
#include <utility>

#include "tests/engine_fixture.h"

namespace strata {
namespace {

using ::testing::HasSubstr;

// What one request of one choice hears. `hold` keeps the engine inside on_start.
class Listener : public Sink {
 public:
  explicit Listener(std::shared_future<void> hold = {}) : hold_(std::move(hold)) {}

  void on_start(const PromptStart& prompt) override {
    EXPECT_EQ(starts++, 0);
    start = prompt;
    started_.set_value();
    if (hold_.valid()) hold_.wait();
  }
  void on_prompt(std::int32_t done, std::int32_t) override {
    EXPECT_EQ(starts, 1);
    computed = done;
  }
  void on_token(std::int32_t choice, const ChosenToken& token) override {
    EXPECT_EQ(starts, 1);
    tokens.resize(std::max(tokens.size(), static_cast<std::size_t>(choice) + 1));
    tokens[static_cast<std::size_t>(choice)].push_back(token.id);
    logprobs.emplace_back(token.logprobs.begin(), token.logprobs.end());
    if (++count == 3) third_.set_value();
  }
  void on_finish(std::int32_t, FinishReason why, const Status& how) override {
    reason = why;
    status = how;
    if (--open == 0) finished_.set_value();
  }
  void wait() { finished_.get_future().wait(); }
  void wait_for_start() { started_.get_future().wait(); }
  void wait_for_three_tokens() { third_.get_future().wait(); }

  PromptStart start;
  int starts = 0, open = 1, count = 0;
  std::int32_t computed = 0;
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<LogProbability>> logprobs;
  FinishReason reason = FinishReason::kStop;
  Status status;

 private:
  std::shared_future<void> hold_;
  std::promise<void> started_, third_, finished_;
};

// Every second token only; none after `length` of them.
class EvenTokens : public Constraint {
 public:
  explicit EvenTokens(int length, std::shared_ptr<std::atomic<int>> clones = nullptr)
      : left_(length), clones_(std::move(clones)) {}
  Result<std::span<const std::uint64_t>> allowed() override {
    mask_.assign(2, left_ > 0 ? 0x5555555555555555u : 0);
    return std::span<const std::uint64_t>(mask_);
  }
  bool ready() const override { return false; }
  void advance(TokenId token) override {
    EXPECT_EQ(token % 2, 0);
    --left_;
  }
  std::unique_ptr<Constraint> clone() const override {
    if (clones_) ++*clones_;
    return std::make_unique<EvenTokens>(left_, clones_);
  }

 private:
  int left_;
  std::shared_ptr<std::atomic<int>> clones_;
  std::vector<std::uint64_t> mask_;
};

class EngineServerTest : public testing::EngineFixture {
 protected:
  void load(EngineOptions options = {}, const testing::TinyShape& shape = {}) {
    engine_ = EngineFixture::load(options, shape);
    ASSERT_NE(engine_, nullptr);
  }
  RequestId submit(Request request, const std::shared_ptr<Listener>& listener) {
    listener->open = request.choices;
    const auto id = engine_->submit(std::move(request), listener);
    EXPECT_TRUE(id.ok()) << id.status().message();
    return id.ok() ? *id : RequestId();
  }
  std::shared_ptr<Listener> run(Request request) {
    auto listener = std::make_shared<Listener>();
    submit(std::move(request), listener);
    listener->wait();
    return listener;
  }

  std::unique_ptr<Engine> engine_;
};

TEST_F(EngineServerTest, ASecondTurnFindsTheFirstOneInTheCache) {
  for (const bool hybrid : {false, true}) {
    testing::TinyShape shape;
    shape.context = 2048;
    shape.hybrid = hybrid;
    load({.context = 2048, .sequences = 2}, shape);
    const auto first = run(greedy(prompt(1'600, 1), 100));
    EXPECT_EQ(first->start.cached, 0);
    EXPECT_EQ(first->start.first_difference, -1);
    std::vector<TokenId> turn = prompt(1'600, 1);
    turn.insert(turn.end(), first->tokens[0].begin(), first->tokens[0].end());
    const auto known = static_cast<double>(turn.size());
    for (const TokenId token : prompt(20, 5)) turn.push_back(token);
    const auto second = run(greedy(turn, 30));
    EXPECT_GE(second->start.cached, 0.98 * known);
    EXPECT_EQ(engine_->stats().prefix_hits, second->start.cached);
    EXPECT_EQ(engine_->stats().prefix_queries, 1'600 + static_cast<std::int64_t>(turn.size()));
    load({.context = 2048, .sequences = 2, .prefix_cache = false}, shape);
    const auto plain = run(greedy(turn, 30));
    EXPECT_EQ(run(greedy(turn, 30))->start.cached, 0);
    EXPECT_EQ(second->tokens, plain->tokens);
  }
}

TEST_F(EngineServerTest, AMissNamesTheFirstTokenThatDiffers) {
  load();
  run(greedy(prompt(100, 1), 4));
  std::vector<TokenId> other = prompt(100, 1);
  other[40] = (other[40] + 1) % 96;
  const auto missed = run(greedy(other, 4));
  EXPECT_EQ(missed->start.cached, 32);
  EXPECT_EQ(missed->start.first_difference, 40);
  Request salted = greedy(prompt(100, 1), 4);
  salted.cache_salt = "somebody else's";
  EXPECT_EQ(run(salted)->start.cached, 0);
  EXPECT_EQ(run(salted)->start.cached, 96);
}

TEST_F(EngineServerTest, ConstrainedChoicesTakeAllowedTokensOnly) {
  load({.sequences = 4});
  auto clones = std::make_shared<std::atomic<int>>(0);
  Request request = greedy(prompt(10, 1), 12);
  request.choices = 3;
  request.sampling.temperature = 2;
  request.constraint = std::make_shared<EvenTokens>(100, clones);
  const auto answer = run(request);
  EXPECT_EQ(*clones, 3);
  EXPECT_NE(answer->tokens[0], answer->tokens[1]);
  for (const auto& tokens : answer->tokens) {
    EXPECT_EQ(tokens.size(), 12u);
    EXPECT_TRUE(std::ranges::all_of(tokens, [](TokenId token) { return token % 2 == 0; }));
  }
  EXPECT_EQ(run(request)->tokens, answer->tokens);
}

// Its masks take much longer than a step of the tiny model.
class SlowMasks : public EvenTokens {
 public:
  SlowMasks() : EvenTokens(1000) {}
  Result<std::span<const std::uint64_t>> allowed() override {
    if (!std::exchange(made_, true)) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    return EvenTokens::allowed();
  }
  bool ready() const override { return made_; }
  void advance(TokenId token) override {
    made_ = false;
    EvenTokens::advance(token);
  }
  std::unique_ptr<Constraint> clone() const override { return std::make_unique<SlowMasks>(); }

 private:
  bool made_ = false;
};

TEST_F(EngineServerTest, AnswersWhoseMasksTakeLongDoNotHoldUpOthers) {
  load({.sequences = 9});
  Request slow = greedy(prompt(10, 1), 60);
  slow.constraint = std::make_shared<EvenTokens>(1000);
  const auto expected = run(slow)->tokens;
  slow.constraint = std::make_shared<SlowMasks>();
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 8; ++i) {
    listeners.push_back(std::make_shared<Listener>());
    submit(slow, listeners.back());
  }
  for (const auto& listener : listeners) listener->wait_for_three_tokens();
  const std::int64_t before = engine_->stats().generated;
  run(greedy(prompt(10, 2), 60));
  EXPECT_LT(engine_->stats().generated - before, 4 * 60) << "8 answers kept its pace";
  for (const auto& listener : listeners) {
    listener->wait();
    EXPECT_EQ(listener->tokens, expected) << "sitting steps out changes no answer";
  }
}

TEST_F(EngineServerTest, AConstraintThatAllowsNothingEndsTheAnswerWithASentence) {
  load();
  Request request = greedy(prompt(10, 1), 12);
  request.constraint = std::make_shared<EvenTokens>(5);
  const auto answer = run(request);
  EXPECT_EQ(answer->tokens[0].size(), 5u);
  EXPECT_EQ(answer->reason, FinishReason::kError);
  EXPECT_THAT(answer->status.message(), HasSubstr("constraint"));
  EXPECT_EQ(run(greedy(prompt(10, 1), 3))->reason, FinishReason::kLength) << "others go on";
}

TEST_F(EngineServerTest, ConstraintsSurvivePreemption) {
  load({.context = 128, .sequences = 1});
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 6; ++i) {
    Request request = greedy(prompt(40, i), 60);
    request.constraint = std::make_shared<EvenTokens>(60);
    listeners.push_back(std::make_shared<Listener>());
    submit(request, listeners.back());
  }
  for (const auto& listener : listeners) {
    listener->wait();
    EXPECT_EQ(listener->reason, FinishReason::kLength) << listener->status.message();
    EXPECT_EQ(listener->tokens[0].size(), 60u);
  }
  EXPECT_GT(engine_->stats().preemptions, 0);
}

TEST_F(EngineServerTest, LogProbabilitiesComeWithEachToken) {
  load();
  Request request = greedy(prompt(10, 1), 4);
  EXPECT_TRUE(run(request)->logprobs[0].empty());
  request.top_logprobs = 3;
  request.choices = 2;
  const auto answer = run(request);
  ASSERT_EQ(answer->logprobs.size(), 8u);
  for (const auto& row : answer->logprobs) {
    ASSERT_EQ(row.size(), 4u);
    EXPECT_EQ(row[0].token, row[1].token) << "greedy: the chosen one is the most probable";
    EXPECT_GE(row[1].value, row[2].value);
    EXPECT_LE(row[0].value, 0);
    EXPECT_TRUE(std::isfinite(row[3].value));
  }
  request.top_logprobs = 0;
  EXPECT_EQ(run(request)->logprobs[0].size(), 1u);
  for (const std::int32_t wrong : {-2, 21}) {
    request.top_logprobs = wrong;
    const auto refused = engine_->submit(request, std::make_shared<Listener>());
    EXPECT_THAT(refused.status().message(), HasSubstr("top_logprobs"));
  }
}

TEST_F(EngineServerTest, AFullQueueRefusesAndEmptiesAgain) {
  load({.running = 1, .queue = 3});
  std::promise<void> hold;
  const auto first = std::make_shared<Listener>(hold.get_future().share());
  submit(greedy(prompt(4, 1), 3), first);
  first->wait_for_start();
  // Until the step ends, the first one counts.
  std::vector<std::shared_ptr<Listener>> waiting{std::make_shared<Listener>(),
                                                 std::make_shared<Listener>()};
  for (const auto& listener : waiting) submit(greedy(prompt(4, 2), 3), listener);
  const auto refused = engine_->submit(greedy(prompt(4, 3), 3), std::make_shared<Listener>());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("3 requests wait"));
  EXPECT_EQ(engine_->stats().waiting, 2);
  EXPECT_EQ(engine_->stats().running, 1);
  hold.set_value();
  for (const auto& listener : waiting) listener->wait();
  EXPECT_GT(waiting[1]->start.queued_seconds, 0);
  for (int i = 0; i < 5; ++i) run(greedy(prompt(4, i), 3));
}

TEST_F(EngineServerTest, TheQueueHoldsSoManyTokens) {
  load({.running = 1, .queue = 8, .queue_tokens = 30});
  std::promise<void> hold;
  const auto first = std::make_shared<Listener>(hold.get_future().share());
  submit(greedy(prompt(40, 1), 3), first);  // an empty queue takes any
  first->wait_for_start();
  const auto refused = engine_->submit(greedy(prompt(4, 3), 3), std::make_shared<Listener>());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.status().message(), HasSubstr("1 requests with 40 tokens"));
  hold.set_value();
  first->wait();
  for (int i = 0; i < 5; ++i) run(greedy(prompt(28, i), 3));  // they have left it
}

TEST_F(EngineServerTest, CancellingWorksInTheQueueInThePromptAndInTheAnswer) {
  testing::TinyShape shape;
  shape.context = 8192;
  load({.context = 8192, .sequences = 4, .step_rows = 8, .running = 2}, shape);
  const auto answering = std::make_shared<Listener>(), prompting = std::make_shared<Listener>(),
             queued = std::make_shared<Listener>();
  const RequestId a = submit(greedy(prompt(4, 1), -1), answering);
  answering->wait_for_three_tokens();
  const RequestId p = submit(greedy(prompt(8'000, 2), 5), prompting);
  prompting->wait_for_start();
  const RequestId q = submit(greedy(prompt(50, 3), 5), queued);
  engine_->cancel(q);
  queued->wait();
  EXPECT_EQ(queued->reason, FinishReason::kCancelled);
  EXPECT_EQ(queued->starts, 0);
  engine_->cancel(p);
  prompting->wait();
  EXPECT_EQ(prompting->reason, FinishReason::kCancelled);
  EXPECT_LT(prompting->computed, 8'000);
  engine_->cancel(a);
  answering->wait();
  EXPECT_EQ(answering->reason, FinishReason::kCancelled);
  EXPECT_EQ(run(greedy(prompt(50, 3), 5))->reason, FinishReason::kLength);
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.waiting, 0);
}

TEST_F(EngineServerTest, HigherPrioritiesAreAnsweredFirst) {
  load({.running = 1});
  std::promise<void> hold;
  const auto first = std::make_shared<Listener>(hold.get_future().share());
  submit(greedy(prompt(4, 1), 3), first);
  first->wait_for_start();
  const auto low = std::make_shared<Listener>(), high = std::make_shared<Listener>();
  Request request = greedy(prompt(4, 2), 20);
  submit(request, low);
  request.priority = 1;
  submit(request, high);
  hold.set_value();
  high->wait();
  low->wait();
  EXPECT_LT(high->start.queued_seconds, low->start.queued_seconds);
}

TEST_F(EngineServerTest, AfterEachStepTheSinksHaveBeenCalled) {
  std::atomic<int> calls = 0;
  load({.after_step = [&] { ++calls; }});
  run(greedy(prompt(4, 1), 10));
  EXPECT_GE(calls, 9);
  const EngineStats stats = engine_->stats();
  EXPECT_EQ(stats.prompt, 4);
  EXPECT_GT(stats.send_seconds, 0);
  engine_.reset();
}

TEST_F(EngineServerTest, RefusesOptionsThatCannotWork) {
  const std::string path = folder_.path("tiny.gguf");
  ASSERT_TRUE(testing::write_tiny_model(path, {}).ok());
  EXPECT_THAT(Engine::load(path, {.queue = 0}, {}).status().message(), HasSubstr("queue"));
  for (const double wrong : {0.5, -1.0, std::nan("")})
    EXPECT_THAT(Engine::load(path, {.interactive_slowdown = wrong}, {}).status().message(),
                HasSubstr("slowdown"));
}

}  // namespace
}  // namespace strata
