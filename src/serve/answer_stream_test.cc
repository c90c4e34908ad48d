#include "serve/answer_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "serve/http/loop.h"
#include "text/tokenizer/test_support.h"

namespace strata::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Takes note of what is cancelled; nothing else is asked of it here.
class CancelledEngine final : public Engine {
 public:
  Result<RequestId> submit(Request, std::shared_ptr<Sink>) override { return RequestId{1}; }
  void cancel(RequestId id) override { cancelled.push_back(id.value); }
  void cancel(RequestId /*id*/, std::int32_t choice) override { ended.push_back(choice); }
  EngineStats stats() const override { return {}; }
  const ModelManifest& manifest() const override { std::abort(); }
  const PlacementPlan& plan() const override { std::abort(); }
  const std::string& device_name() const override { std::abort(); }
  std::int32_t vocabulary() const override { return 256; }
  bool causal() const override { return true; }
  std::map<std::string, Bytes> memory_by_owner() const override { return {}; }

  std::vector<std::uint64_t> cancelled;
  std::vector<std::int32_t> ended;  // choices cancelled alone
};

// What a writer was told, a line each.
class LoggingWriter final : public AnswerWriter {
 public:
  explicit LoggingWriter(std::vector<std::string>& log) : log_(log) {}

  void prompt(std::int32_t choice, const std::vector<PromptToken>& tokens, ClientStream&) override {
    log_.push_back(fmt::format("{} prompt of {}", choice, tokens.size()));
  }
  void token(std::int32_t choice, const TokenEvent& event, ClientStream&) override {
    log_.push_back(fmt::format("{} {}", choice, event.delta.content));
  }
  void end_choice(std::int32_t choice, Ending ending, const AnswerDelta& rest,
                  const AnswerText& text, ClientStream&) override {
    constexpr const char* kNames[] = {"stop", "length", "calls"};
    log_.push_back(fmt::format("{} {} '{}' of '{}'", choice, kNames[static_cast<int>(ending)],
                               rest.content, text.content()));
  }
  void end(const Usage& usage, ClientStream&) override {
    log_.push_back(fmt::format("end: {} {} {}", usage.prompt_tokens, usage.cached_tokens,
                               usage.completion_tokens));
  }
  void fail(const Refusal& refusal, ClientStream&) override {
    log_.push_back(fmt::format("fail: {} {}", refusal.http_status, refusal.type));
  }

 private:
  std::vector<std::string>& log_;
};

// An answer whose tokens are bytes.
class AnswerStreamTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = strata::testing::byte_vocabulary().create();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
    tokenizer_ = std::move(*tokenizer);
  }
  void TearDown() override { close(); }
  // No loop runs here, so what were sent to an open channel would stay.
  void close() {
    if (channel_ && !channel_->closed()) channel_->complete();
  }

  AnswerStream& start(AnswerOptions text = {}, std::int32_t choices = 1,
                      std::vector<TokenId> prompt = {}) {
    close();
    channel_ = std::make_shared<http::Channel>(std::make_shared<http::Loop>());
    lease_ = std::make_shared<int>(0);
    AnswerSetup setup;
    setup.lease = lease_;
    setup.engine = &engine_;
    setup.tokenizer = tokenizer_.get();
    setup.text = std::move(text);
    setup.prompt = std::move(prompt);
    setup.prompt_tokens = 5;
    setup.choices = choices;
    setup.exchange = std::make_shared<http::Exchange>(channel_);
    setup.writer = std::make_unique<LoggingWriter>(log_);
    setup.metrics = &metrics_;
    setup.arrival = Clock::now();
    metrics_.requests_arrived(choices);
    stream_ = std::make_unique<AnswerStream>(std::move(setup));
    stream_->started(RequestId{7});
    return *stream_;
  }
  void say(std::string_view text, std::int32_t choice = 0) {
    for (const char byte : text)
      stream_->on_token(choice, static_cast<unsigned char>(byte), {}, Clock::now(), batch_);
  }
  void finish(FinishReason reason, std::int32_t choice = 0, const Status& status = {}) {
    stream_->on_finish(choice, reason, status, Clock::now(), batch_);
  }
  void expect_counts(std::uint64_t done, std::uint64_t failed, std::uint64_t disconnected,
                     std::uint64_t tokens) {
    const Metrics::Counts counts = metrics_.counts();
    EXPECT_EQ(counts.done, done);
    EXPECT_EQ(counts.failed, failed);
    EXPECT_EQ(counts.disconnected, disconnected);
    EXPECT_EQ(counts.arrived, done + failed + disconnected);
    EXPECT_EQ(counts.completion_tokens, tokens);
  }
  std::string metric(std::string_view name) {
    const std::string text = all_metrics_.text();
    const std::string start = fmt::format("\n{}{{model_name=\"m\"}} ", name);
    const std::size_t at = text.find(start) + start.size();
    return text.substr(at, text.find('\n', at) - at);
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  CancelledEngine engine_;
  ServerMetrics all_metrics_;
  Metrics& metrics_ = all_metrics_.of("m");
  std::vector<std::string> log_;
  std::shared_ptr<http::Channel> channel_;
  std::shared_ptr<int> lease_;
  http::EventBatch batch_;
  std::unique_ptr<AnswerStream> stream_;
};

TEST_F(AnswerStreamTest, TellsTheWriterAllInOrder) {
  start({}, 1, {1, 2, 3});
  EXPECT_EQ(stream_->slot().state, "queued");
  stream_->on_prompt(3);
  EXPECT_EQ(stream_->slot().state, "prompt");
  stream_->on_start({.cached = 2, .first_difference = 2}, Clock::now());
  say("hi");
  EXPECT_EQ(stream_->slot().state, "generating");
  EXPECT_EQ(stream_->slot().first_difference, 2);
  finish(FinishReason::kStop);
  EXPECT_THAT(log_, ElementsAre("0 prompt of 3", "0 h", "0 i", "0 stop '' of 'hi'", "end: 5 2 2"));
  EXPECT_EQ(stream_->slot().state, "done");
  EXPECT_EQ(stream_->slot().id.value, 7u);
  expect_counts(1, 0, 0, 2);
  EXPECT_THAT(engine_.cancelled, IsEmpty());
}

TEST_F(AnswerStreamTest, EndsForTheReasonThatTheEngineGives) {
  start();
  say("hi");
  finish(FinishReason::kLength);
  start();
  finish(FinishReason::kContext);
  start({.tool_style = ToolStyle::kHermes});
  say(R"(<tool_call>{"name": "f", "arguments": {}}</tool_call>)");
  log_.erase(log_.begin() + 5, log_.end());
  finish(FinishReason::kStop);
  EXPECT_THAT(log_, ElementsAre("0 h", "0 i", "0 length '' of 'hi'", "end: 5 0 2",
                                "0 length '' of ''", "0 calls '' of ''", "end: 5 0 53"));
}

TEST_F(AnswerStreamTest, EndsInCallsOnlyWhereAllAreComplete) {
  const std::string call = R"(<tool_call>{"name": "f", "arguments": {"city": "Rome"}}</tool_call>)";
  for (const auto& [stop, said, ending] : std::initializer_list<std::array<std::string, 3>>{
           {"city", call, "stop"},
           {"Rome", call, "stop"},
           {"}", call, "stop"},
           {"</tool_call>", call, "calls"},
           {"#", call + "#", "calls"},
           {"#", call + R"(<tool_call>{"name": "g", "arguments": {"x": "#)", "stop"},
           {"arguments", call, "stop"}}) {
    log_.clear();
    start({.stops = {stop}, .tool_style = ToolStyle::kHermes});
    say(said);
    ASSERT_GE(log_.size(), 2u) << stop;
    EXPECT_THAT(log_[log_.size() - 2], HasSubstr("0 " + ending + " ")) << stop;
  }
}

TEST_F(AnswerStreamTest, LeavesTheEngineAtAStopStringAndHearsNoMore) {
  start({.stops = {"lo"}});
  say("hello you");
  EXPECT_THAT(log_,
              ElementsAre("0 h", "0 e", "0 ", "0 l", "0 ", "0 stop '' of 'hel'", "end: 5 0 5"));
  EXPECT_THAT(engine_.cancelled, ElementsAre(7u));
  finish(FinishReason::kCancelled);
  EXPECT_EQ(log_.size(), 7u);
  expect_counts(1, 0, 0, 5);
}

TEST_F(AnswerStreamTest, EndsAChoiceAloneAtItsStopString) {
  start({.stops = {"lo"}}, 2);
  say("h", 0);
  say("lo", 1);
  EXPECT_THAT(engine_.ended, ElementsAre(1));
  EXPECT_THAT(engine_.cancelled, IsEmpty());
  finish(FinishReason::kCancelled, 1);
  finish(FinishReason::kStop, 0);
  expect_counts(2, 0, 0, 3);
}

TEST_F(AnswerStreamTest, KeepsItsModelUntilTheEngineIsDoneWithAllChoices) {
  start({}, 2);
  stream_->cancel();
  EXPECT_THAT(engine_.cancelled, ElementsAre(7u));
  finish(FinishReason::kCancelled, 1);
  EXPECT_EQ(lease_.use_count(), 2);
  finish(FinishReason::kCancelled, 0);
  EXPECT_EQ(lease_.use_count(), 1);
  stream_->cancel();  // a client that goes later
  EXPECT_EQ(engine_.cancelled.size(), 1u);
}

TEST_F(AnswerStreamTest, CancelsAsSoonAsItHasAnId) {
  start();
  AnswerSetup setup;
  setup.engine = &engine_;
  setup.tokenizer = tokenizer_.get();
  setup.metrics = &metrics_;
  AnswerStream other(std::move(setup));
  other.cancel();
  EXPECT_THAT(engine_.cancelled, IsEmpty());
  other.started(RequestId{9});
  EXPECT_THAT(engine_.cancelled, ElementsAre(9u));
}

TEST_F(AnswerStreamTest, FailsOnceForAllChoices) {
  start({}, 2);
  say("a", 0);
  finish(FinishReason::kError, 0, invalid_argument("x"));
  finish(FinishReason::kCancelled, 1);
  EXPECT_THAT(log_, ElementsAre("0 a", "fail: 400 invalid_request_error"));
  expect_counts(0, 2, 0, 1);
}

TEST_F(AnswerStreamTest, CountsClientsThatWent) {
  start({}, 2);
  say("a", 0);
  finish(FinishReason::kStop, 0);
  channel_->lose();
  finish(FinishReason::kCancelled, 1);
  EXPECT_EQ(log_.back(), "fail: 503 overloaded_error");
  expect_counts(1, 0, 1, 1);
}

TEST_F(AnswerStreamTest, IsRefusedWithTheAnswerThatItIsAPartOf) {
  start({}, 3);
  stream_->refuse(resource_exhausted("full"), batch_);
  for (std::int32_t i = 0; i < 3; ++i) finish(FinishReason::kCancelled, i);
  EXPECT_THAT(log_, ElementsAre("fail: 503 overloaded_error"));
  expect_counts(0, 3, 0, 0);
}

TEST_F(AnswerStreamTest, FailsAtABrokenCallWhetherItGoesOnOrNot) {
  const AnswerOptions tools{.tool_style = ToolStyle::kHermes};
  for (const std::string_view rest : {"]}}", ""}) {
    log_.clear();
    engine_.cancelled.clear();
    start(tools);
    say(R"(<tool_call>{"name": "f", "arguments": {"a": )");
    say(rest);
    finish(FinishReason::kStop);
    EXPECT_EQ(log_.back(), "fail: 500 tool_call_error");
    EXPECT_EQ(std::ranges::count_if(log_, [](const auto& l) { return l.starts_with("fail"); }), 1);
    EXPECT_THAT(engine_.cancelled, ElementsAre(7u));
  }
  EXPECT_EQ(metrics_.counts().failed, 2u);
}

TEST_F(AnswerStreamTest, MeasuresEachChoiceByItself) {
  start({}, 2);
  stream_->on_start({.cached = 1}, Clock::now());
  const Clock::time_point time = Clock::now();
  for (int i = 0; i < 3; ++i)
    for (const std::int32_t choice : {0, 1})
      stream_->on_token(choice, 'a', {}, time + std::chrono::seconds(10 * i), batch_);
  finish(FinishReason::kStop, 0);
  finish(FinishReason::kLength, 1);
  EXPECT_EQ(metric("vllm:time_to_first_token_seconds_count"), "2");
  EXPECT_EQ(metric("vllm:inter_token_latency_seconds_count"), "4");
  EXPECT_EQ(metric("vllm:inter_token_latency_seconds_sum"), "40");
  EXPECT_EQ(metric("vllm:e2e_request_latency_seconds_count"), "2");
  EXPECT_EQ(metric("vllm:request_generation_tokens_sum"), "6");
  EXPECT_EQ(metric("vllm:request_generation_tokens_count"), "2");
  EXPECT_EQ(metric("vllm:request_prompt_tokens_count"), "1");  // they share it
  EXPECT_EQ(metric("vllm:prompt_tokens_total"), "5");
  expect_counts(2, 0, 0, 6);
}

}  // namespace
}  // namespace strata::serve
