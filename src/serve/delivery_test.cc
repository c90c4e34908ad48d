#include "serve/delivery.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <mutex>

#include "serve/http/test_support.h"
#include "tests/shared_data.h"

namespace strata::serve {
namespace {

using http::TestClient;
using strata::testing::reference_path;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// An engine that does nothing by itself: the test calls the sinks.
class PuppetEngine final : public Engine {
 public:
  explicit PuppetEngine(ModelManifest manifest) : manifest_(std::move(manifest)) {}

  Result<RequestId> submit(Request /*request*/, std::shared_ptr<Sink> sink) override {
    const std::lock_guard lock(mutex_);
    if (static_cast<int>(sinks_.size()) == refused) return resource_exhausted("the queue is full");
    const RequestId id{static_cast<std::int64_t>(sinks_.size())};
    sinks_.push_back(std::move(sink));
    return id;
  }
  void cancel(RequestId id) override { note(fmt::format("{}", id.value)); }
  void cancel(RequestId id, std::int32_t choice) override {
    note(fmt::format("{}.{}", id.value, choice));
  }
  EngineStats stats() const override { return {}; }
  const ModelManifest& manifest() const override { return manifest_; }
  const PlacementPlan& plan() const override { return plan_; }
  const std::string& device_name() const override { return device_; }
  std::int32_t vocabulary() const override { return 512; }
  bool causal() const override { return true; }
  std::map<std::string, Bytes> memory_by_owner() const override { return {}; }

  Sink& sink(std::size_t request) {
    const std::lock_guard lock(mutex_);
    return *sinks_.at(request);
  }
  // Of whole requests as "ID", of choices as "ID.CHOICE".
  std::vector<std::string> cancelled() {
    const std::lock_guard lock(mutex_);
    return cancelled_;
  }

  int refused = -1;  // the number of the request that finds the queue full

 private:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(std::move(what));
  }

  const ModelManifest manifest_;
  const PlacementPlan plan_;
  const std::string device_ = "none";
  std::mutex mutex_;
  std::vector<std::shared_ptr<Sink>> sinks_;
  std::vector<std::string> cancelled_;
};

// Writes what it hears.
class PlainWriter final : public AnswerWriter {
 public:
  void token(std::int32_t choice, const TokenEvent& event, ClientStream& client) override {
    client.write(fmt::format("{}={}|", choice, event.delta.content));
  }
  void end_choice(std::int32_t choice, Ending ending, const AnswerDelta& rest, const AnswerText&,
                  ClientStream& client) override {
    const char* const why = ending == Ending::kLength ? "length" : "stop";
    client.write(fmt::format("{}={} {}|", choice, rest.content, why));
  }
  void end(const Usage& usage, ClientStream& client) override {
    client.write(fmt::format("{} of {} cached, {} made", usage.cached_tokens, usage.prompt_tokens,
                             usage.completion_tokens));
    if (!open) client.finish();
  }
  void fail(const Refusal& refusal, ClientStream& client) override {
    client.fail({refusal.http_status, {}, refusal.message});
  }

  bool open = false;  // the stream has more to come
};

class DeliveryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    STRATA_REQUIRE_REFERENCE("llama");
    auto manifest = ModelManifest::open(reference_path("llama") + ".gguf");
    ASSERT_TRUE(manifest.ok());
    auto tokenizer = Tokenizer::create(manifest->metadata());
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_ = std::move(*tokenizer);
    engine_.emplace(std::move(*manifest));
    server_ = http::start_test_server(
        [this](const http::HttpRequest&, std::shared_ptr<http::Exchange> exchange) {
          arrived_.set_value(std::move(exchange));
        });
  }

  std::shared_ptr<http::Exchange> ask(TestClient& client) {
    arrived_ = {};
    client.send(http::get("/"));
    return arrived_.get_future().get();
  }

  AnswerPart part(const std::shared_ptr<http::Exchange>& exchange) {
    AnswerPart part;
    AnswerSetup& setup = part.setup;
    setup.engine = &*engine_;
    setup.tokenizer = tokenizer_.get();
    setup.prompt_tokens = 7;
    setup.exchange = exchange;
    setup.stream = http::StreamStart{.error_prefix = "error: "};
    setup.writer = std::make_unique<PlainWriter>();
    setup.metrics = &metrics_;
    setup.arrival = std::chrono::steady_clock::now();
    return part;
  }

  std::optional<Refusal> submit(AnswerPart first) {
    std::vector<AnswerPart> parts;
    parts.push_back(std::move(first));
    return delivery_.submit(std::move(parts));
  }
  std::optional<Refusal> submit(AnswerPart first, AnswerPart second) {
    std::vector<AnswerPart> parts;
    parts.push_back(std::move(first));
    parts.push_back(std::move(second));
    return delivery_.submit(std::move(parts));
  }

  // A choice's next tokens.
  void say(std::size_t request, std::int32_t choice, std::string_view text) {
    const auto tokens = tokenizer_->encode(text, false, {.add_bos = false, .add_eos = false});
    ASSERT_TRUE(tokens.ok());
    for (const TokenId token : *tokens) engine_->sink(request).on_token(choice, {token, {}});
    delivery_.after_step();
  }

  std::unique_ptr<const Tokenizer> tokenizer_;
  std::optional<PuppetEngine> engine_;
  Metrics metrics_;
  std::promise<std::shared_ptr<http::Exchange>> arrived_;
  std::unique_ptr<http::Server> server_;
  Delivery delivery_;
};

TEST_F(DeliveryTest, ChoicesComeInTheOrderOfTheirTokens) {
  TestClient client(server_->port());
  AnswerPart both = part(ask(client));
  both.setup.choices = 2;
  ASSERT_EQ(submit(std::move(both)), std::nullopt);
  engine_->sink(0).on_start({.cached = 4});
  say(0, 0, "a");
  say(0, 1, "b");
  engine_->sink(0).on_finish(1, FinishReason::kLength, {});
  say(0, 0, "c");
  engine_->sink(0).on_finish(0, FinishReason::kStop, {});
  const http::TestAnswer answer = client.read();
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body, "0=a|1=b|1= length|0=c|0= stop|4 of 7 cached, 3 made");
}

TEST_F(DeliveryTest, SlotsSayHowFarARequestIs) {
  TestClient client(server_->port());
  ASSERT_EQ(submit(part(ask(client))), std::nullopt);
  const auto state = [this] { return delivery_.slots().front().state; };
  EXPECT_EQ(state(), "queued");
  engine_->sink(0).on_prompt(3, 7);
  EXPECT_EQ(state(), "prompt");
  EXPECT_EQ(delivery_.slots().front().prompt_computed, 3);
  say(0, 0, "a");
  EXPECT_TRUE(http::eventually([&] { return state() == "generating"; }));
  engine_->sink(0).on_finish(0, FinishReason::kStop, {});
  EXPECT_TRUE(http::eventually([&] { return state() == "done"; }));
}

TEST_F(DeliveryTest, AClientThatGoesEndsItsRequestsAndNoOthers) {
  TestClient leaving(server_->port()), staying(server_->port());
  const auto exchange = ask(leaving);
  ASSERT_EQ(submit(part(exchange), part(exchange)), std::nullopt);
  ASSERT_EQ(submit(part(ask(staying))), std::nullopt);
  leaving.close();
  EXPECT_TRUE(http::eventually([&] { return engine_->cancelled().size() == 2; }));
  EXPECT_THAT(engine_->cancelled(), ElementsAre("0", "1"));
  for (const std::size_t request : {0, 1})
    engine_->sink(request).on_finish(0, FinishReason::kCancelled, {});
  say(2, 0, "still here");
  engine_->sink(2).on_finish(0, FinishReason::kStop, {});
  EXPECT_THAT(staying.read().body, HasSubstr("0= stop"));
  EXPECT_TRUE(http::eventually([&] { return metrics_.counts().disconnected == 2; }));
  EXPECT_EQ(metrics_.counts().done, 1u);
}

TEST_F(DeliveryTest, AStoppedChoiceIsCancelledAlone) {
  TestClient client(server_->port());
  AnswerPart three = part(ask(client));
  three.setup.choices = 3;
  three.setup.text.stops = {"!"};
  ASSERT_EQ(submit(std::move(three)), std::nullopt);
  say(0, 1, "no!");
  EXPECT_TRUE(http::eventually([&] { return engine_->cancelled().size() == 1; }));
  say(0, 1, "unheard");
  engine_->sink(0).on_finish(1, FinishReason::kCancelled, {});
  engine_->sink(0).on_finish(0, FinishReason::kLength, {});
  say(0, 2, "yes!");
  const http::TestAnswer answer = client.read();
  EXPECT_TRUE(answer.whole);
  EXPECT_THAT(answer.body, HasSubstr("1= stop|0= length|2="));
  EXPECT_THAT(answer.body, Not(HasSubstr("unheard")));
  EXPECT_THAT(engine_->cancelled(), ElementsAre("0.1", "0"));
}

TEST_F(DeliveryTest, ErrorsOfTheEngineEndTheStreamInItsForm) {
  const std::map<FinishReason, std::string> cases = {
      {FinishReason::kError, "error: the device is gone"},
      {FinishReason::kCancelled, "error: the server ended this request"}};
  std::size_t number = 0;
  for (const auto& [reason, text] : cases) {
    TestClient client(server_->port());
    ASSERT_EQ(submit(part(ask(client))), std::nullopt);
    say(number, 0, "a");
    engine_->sink(number++).on_finish(0, reason, internal_error("the device is gone"));
    const http::TestAnswer answer = client.read();
    EXPECT_TRUE(answer.whole);
    EXPECT_EQ(answer.body, "0=a|" + text);
  }
  EXPECT_EQ(metrics_.counts().failed, 2u);
}

TEST_F(DeliveryTest, WhatTheEngineRefusesFirstIsTheCallersToSay) {
  TestClient client(server_->port());
  const auto exchange = ask(client);
  engine_->refused = 0;
  const auto refusal = submit(part(exchange), part(exchange));
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->http_status, 503);
  EXPECT_TRUE(delivery_.slots().empty());
  exchange->respond({503, {}, "later"});
  EXPECT_EQ(client.read().body, "later");
}

TEST_F(DeliveryTest, WhatTheEngineRefusesLaterFailsTheWhole) {
  TestClient client(server_->port());
  const auto exchange = ask(client);
  engine_->refused = 1;
  ASSERT_EQ(submit(part(exchange), part(exchange)), std::nullopt);
  EXPECT_EQ(client.read().body, "error: the queue is full");
  EXPECT_THAT(engine_->cancelled(), ElementsAre("0"));
  engine_->sink(0).on_finish(0, FinishReason::kCancelled, {});
  EXPECT_EQ(metrics_.counts().disconnected, 0u) << "it has heard why";
}

TEST_F(DeliveryTest, APartThatFailsEndsTheOthers) {
  TestClient client(server_->port());
  const auto exchange = ask(client);
  ASSERT_EQ(submit(part(exchange), part(exchange)), std::nullopt);
  engine_->sink(0).on_finish(0, FinishReason::kError, internal_error("the device is gone"));
  EXPECT_EQ(client.read().body, "error: the device is gone");
  ASSERT_TRUE(http::eventually([&] { return exchange->closed(); }));
  say(1, 0, "unheard");
  EXPECT_TRUE(http::eventually([&] { return !engine_->cancelled().empty(); }));
  EXPECT_THAT(engine_->cancelled(), ElementsAre("1"));
  engine_->sink(1).on_finish(0, FinishReason::kCancelled, {});
  EXPECT_TRUE(http::eventually([&] { return metrics_.counts().failed == 2; }));
  EXPECT_EQ(metrics_.counts().disconnected, 0u);
}

TEST_F(DeliveryTest, AModelMayGoBeforeTheClientsItAnswered) {
  std::atomic<bool> gone{false};
  TestClient client(server_->port());
  auto exchange = ask(client);
  AnswerPart last = part(exchange);
  last.setup.lease =
      std::shared_ptr<void>(&gone, [](void* at) { *static_cast<std::atomic<bool>*>(at) = true; });
  auto writer = std::make_unique<PlainWriter>();
  writer->open = true;
  last.setup.writer = std::move(writer);
  ASSERT_EQ(submit(std::move(last)), std::nullopt);
  say(0, 0, "a");
  engine_->sink(0).on_finish(0, FinishReason::kStop, {});
  ASSERT_TRUE(http::eventually([&] { return gone.load(); }));
  client.close();
  ASSERT_TRUE(http::eventually([&] { return exchange->closed(); }));
  server_.reset();  // its callbacks have been called
  EXPECT_TRUE(engine_->cancelled().empty());
}

}  // namespace
}  // namespace strata::serve
