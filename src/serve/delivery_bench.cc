// What answers cost from an engine's sinks to the clients: text of tokens, chunks as long as those
// of OpenAI's protocol, sockets.
#include <fmt/format.h>

#include <mutex>

#include "serve/delivery.h"
#include "serve/http/bench_support.h"
#include "serve/http/server.h"
#include "text/tokenizer/test_support.h"

namespace strata::serve {
namespace {

// An engine whose tokens the benchmark makes.
class FakeEngine final : public Engine {
 public:
  Result<RequestId> submit(Request /*request*/, std::shared_ptr<Sink> sink) override {
    const std::lock_guard lock(mutex_);
    sinks_.push_back(std::move(sink));
    return RequestId{static_cast<std::int64_t>(sinks_.size()) - 1};
  }
  void cancel(RequestId /*id*/) override {}
  void cancel(RequestId /*id*/, std::int32_t /*choice*/) override {}
  EngineStats stats() const override { return {}; }
  const ModelManifest& manifest() const override { std::terminate(); }
  const PlacementPlan& plan() const override { return plan_; }
  const std::string& device_name() const override { return device_; }
  std::int32_t vocabulary() const override { return 256; }
  bool causal() const override { return true; }
  std::map<std::string, Bytes> memory_by_owner() const override { return {}; }

  void step(TokenId token) {
    for (const auto& sink : sinks_) sink->on_token(0, {token, {}});
  }

 private:
  const PlacementPlan plan_ = {};
  const std::string device_ = "none";
  std::mutex mutex_;
  std::vector<std::shared_ptr<Sink>> sinks_;
};

std::string chunk_of(std::string_view text) {
  return fmt::format(
      "data: {{\"id\":\"cmpl-0123456789abcdef0123456789abcdef\",\"object\":\"text_completion\","
      "\"created\":1700000000,\"model\":\"benchmark\",\"choices\":[{{\"index\":0,\"text\":\"{}\","
      "\"logprobs\":null,\"finish_reason\":null}}]}}\n\n",
      text);
}

class ChunkWriter final : public AnswerWriter {
 public:
  void token(std::int32_t /*choice*/, const TokenEvent& event, ClientStream& client) override {
    client.write(chunk_of(event.delta.content));
  }
  void end_choice(std::int32_t /*choice*/, Ending /*ending*/, const AnswerDelta& /*rest*/,
                  const AnswerText& /*text*/, ClientStream& /*client*/) override {}
  void end(const Usage& /*usage*/, ClientStream& client) override { client.finish(); }
  void fail(const Refusal& /*refusal*/, ClientStream& client) override { client.finish(); }
};

AnswerPart part_of(FakeEngine& engine, const Tokenizer& tokenizer, Metrics& metrics,
                   std::shared_ptr<http::Exchange> exchange) {
  AnswerPart part;
  AnswerSetup& setup = part.setup;
  setup.engine = &engine;
  setup.tokenizer = &tokenizer;
  setup.prompt_tokens = 1;
  setup.exchange = std::move(exchange);
  setup.stream.emplace();
  setup.writer = std::make_unique<ChunkWriter>();
  setup.metrics = &metrics;
  setup.arrival = std::chrono::steady_clock::now();
  return part;
}

void answers(benchmark::State& state) {
  const auto streams = static_cast<std::size_t>(state.range(0));
  const auto vocabulary = testing::byte_vocabulary();
  const auto tokenizer = vocabulary.create();
  FakeEngine engine;
  Metrics metrics;
  Delivery delivery;
  std::atomic<std::size_t> started{0};
  const auto server = http::Server::start(
      {}, [&](const http::HttpRequest&, std::shared_ptr<http::Exchange> client) {
        std::vector<AnswerPart> parts;
        parts.push_back(part_of(engine, **tokenizer, metrics, std::move(client)));
        (void)delivery.submit(std::move(parts));
        ++started;
      });
  if (!server.ok()) return state.SkipWithError(server.status().message().c_str());
  const http::Readers readers((*server)->port(), static_cast<int>(streams));
  if (readers.failed() || !http::wait_for([&] { return started == streams; }))
    return state.SkipWithError("the clients cannot connect");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // the heads are read
  http::measure(state, readers, {streams, chunk_of("a").size()}, [&] {
    engine.step('a');
    delivery.after_step();
  });
}

BENCHMARK(answers)->Arg(32)->Arg(256)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace strata::serve
