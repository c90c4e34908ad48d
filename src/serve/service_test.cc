#include "serve/service.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "serve/http/test_support.h"
#include "tests/shared_data.h"

namespace strata::serve {
namespace {

using http::TestClient;
using strata::testing::reference_path;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kChat = "/v1/chat/completions";
constexpr const char* kBody =
    R"({"model": "slow", "stream": true, "max_tokens": 3,
        "messages": [{"role": "user", "content": "Hi"}]})";

// A server whose model loads for as long as the test wants.
class SlowModelTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kQueue = 40;

  void SetUp() override {
    STRATA_REQUIRE_REFERENCE("llama");
    ModelsOptions models;
    models.files = {ModelFile{.name = "slow", .path = reference_path("llama") + ".gguf"}};
    models.engine.memory = kGiB;  // sanitizers take some of it
    models.engine.context = 256;
    models.engine.threads = 1;
    models.engine.queue = kQueue;
    models.sampling = [wait = loaded_.get_future().share()](const Metadata&, std::int32_t) {
      wait.wait_for(std::chrono::seconds(20));
      return SamplingDefaults();
    };
    service_.emplace(std::move(models), ServiceFacts{"test", {}, {}});
    add_openai(router_, *service_);
    add_ollama(router_, *service_);
    http::ServerOptions options;
    options.keep_alive_interval = std::chrono::milliseconds(20);
    server_ = http::start_test_server(
        [this](http::HttpRequest request, ExchangePtr exchange) {
          router_.handle(std::move(request), std::move(exchange));
        },
        options);
  }

  std::promise<void> loaded_;
  std::optional<Service> service_;
  Router router_;
  std::unique_ptr<http::Server> server_;
};

TEST(ClientOf, TellsUsersKeysAndMachinesApart) {
  http::HttpRequest request;
  request.peer = "127.0.0.1";
  const std::uint64_t plain = client_of(request, "");
  EXPECT_EQ(client_of(request, ""), plain);
  EXPECT_NE(client_of(request, "someone"), plain);
  request.headers.emplace_back("Authorization", "Bearer one");
  const std::uint64_t keyed = client_of(request, "");
  EXPECT_NE(keyed, plain);
  request.headers.back().second = "Bearer two";
  EXPECT_NE(client_of(request, ""), keyed);
}

TEST_F(SlowModelTest, StreamsShowLifeWhileItLoads) {
  TestClient openai(server_->port()), ollama(server_->port());
  openai.send(http::post(kChat, kBody));
  ollama.send(http::post("/api/chat", R"({"messages": [{"role": "user", "content": "Hi"}]})"));
  for (TestClient* const client : {&openai, &ollama}) EXPECT_EQ(client->read_head().status, 200);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(openai.read_chunk(), StartsWith(": "));
    const std::string sign = ollama.read_chunk();
    EXPECT_THAT(sign, HasSubstr(R"("content":"")"));
    EXPECT_THAT(sign, HasSubstr(R"("model":"slow")"));  // which the client did not name
  }
  loaded_.set_value();
  const auto rest = [](TestClient& client) {
    std::string text;
    for (std::string chunk; !(chunk = client.read_chunk()).empty();) text += chunk;
    return text;
  };
  EXPECT_THAT(rest(openai), EndsWith("data: [DONE]\n\n"));
  EXPECT_THAT(rest(ollama), HasSubstr(R"("done":true)"));
}

TEST_F(SlowModelTest, AServerThatStopsMeanwhileSaysSoInEachProtocol) {
  TestClient stream(server_->port()), lines(server_->port());
  TestClient whole(server_->port()), loading(server_->port());
  stream.send(http::post(kChat, kBody));
  lines.send(http::post("/api/chat", kBody));
  for (TestClient* const client : {&stream, &lines}) client->read_head();
  whole.send(http::post("/api/chat", R"({"model": "slow", "stream": false, "messages": [
      {"role": "user", "content": "Hi"}]})"));
  loading.send(http::post("/api/generate", R"({"model": "slow"})"));
  ASSERT_TRUE(http::eventually([&] { return server_->stats().requests == 4; }));
  ASSERT_TRUE(http::eventually([&] { return server_->stats().queued == 0; }));
  std::future<http::StopReport> ended =
      std::async(std::launch::async, [&] { return server_->stop(std::chrono::milliseconds(50)); });
  const auto last_chunk = [](TestClient& client) {
    std::string last;
    for (std::string chunk; !(chunk = client.read_chunk()).empty();) last = chunk;
    client.close();
    return last;
  };
  const std::string event = last_chunk(stream);
  EXPECT_THAT(event, StartsWith(R"(data: {"error":{"message":"the server is stopping)"));
  EXPECT_THAT(event, EndsWith("}}\n\ndata: [DONE]\n\n"));
  EXPECT_EQ(last_chunk(lines), "{\"error\":\"the server is stopping\"}\n");
  for (TestClient* const client : {&whole, &loading}) {
    const http::TestAnswer refused = client->read();
    client->close();
    EXPECT_EQ(refused.status, 503);
    EXPECT_EQ(refused.header("Retry-After"), "1");
    EXPECT_EQ(refused.body, R"({"error":"the server is stopping"})");
  }
  EXPECT_EQ(ended.get().cut, 4u);
  loaded_.set_value();
}

TEST_F(SlowModelTest, EchoesOfAllAnswersTogetherAreLimited) {
  loaded_.set_value();
  TestClient client(server_->port());
  const auto ask = [&](int prompts, int n, int logprobs) {
    const std::vector all(prompts, std::vector(200, 5));
    client.send(http::post("/v1/completions",
                           fmt::format(R"({{"model": "slow", "echo": true, "max_tokens": 1,
                                            "prompt": {}, "n": {}, "logprobs": {}}})",
                                       all, n, logprobs)));
    return client.read();
  };
  EXPECT_EQ(ask(1, 2, 20).status, 200);
  for (const http::TestAnswer& answer : {ask(1, 63, 20), ask(2, 32, 20), ask(1, 128, 10)}) {
    EXPECT_EQ(answer.status, 400);
    EXPECT_THAT(answer.body, HasSubstr(R"("param":"echo")"));
    EXPECT_THAT(answer.body, HasSubstr("times `n`"));
  }
}

TEST_F(SlowModelTest, RefusesPromptsThatCouldNeverWaitTogether) {
  TestClient client(server_->port());
  const auto ask = [&](std::size_t prompts, std::size_t tokens) {
    const std::vector all(prompts, std::vector(tokens, 5));
    client.send(
        http::post("/v1/completions",
                   fmt::format(R"({{"model": "slow", "max_tokens": 1, "prompt": {}}})", all)));
    return client.read();
  };
  const auto expect_refusal = [](const http::TestAnswer& answer, std::string_view limit) {
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_THAT(answer.body, HasSubstr(R"("param":"prompt")"));
    EXPECT_THAT(answer.body, HasSubstr(limit));
  };
  expect_refusal(ask(kQueue + 1, 1), "lets 40 requests of a model wait (--queue)");
  loaded_.set_value();
  EXPECT_EQ(ask(kQueue, 1).status, 200);
  expect_refusal(ask(kQueue + 1, 1), "lets 40 requests of a model wait (--queue)");
  const Metrics::Counts counts = service_->metrics().counts();
  EXPECT_EQ(counts.arrived, 3 * kQueue + 2);
  EXPECT_EQ(counts.refused, 2 * (kQueue + 1));
  EXPECT_EQ(counts.failed, 0u);
}

TEST_F(SlowModelTest, TellsClientsWhatOfTheirsAsksForThinkingInVain) {
  loaded_.set_value();
  TestClient client(server_->port());
  const auto ask = [&](const char* path, const char* more) {
    client.send(http::post(path, fmt::format(R"({{"model": "slow", "stream": false, {},
                               "messages": [{{"role": "user", "content": "Hi"}}]}})",
                                             more)));
    const http::TestAnswer answer = client.read();
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  };
  EXPECT_THAT(ask(kChat, R"("max_tokens": 1, "reasoning_effort": "low")"),
              HasSubstr("`reasoning_effort`: the model's chat template knows no thinking"));
  EXPECT_THAT(ask(kChat, R"("max_tokens": 1, "chat_template_kwargs": {"enable_thinking": true})"),
              HasSubstr("`chat_template_kwargs.enable_thinking`: the model's"));
  EXPECT_THAT(ask("/api/chat", R"("options": {"num_predict": 1}, "think": true)"),
              HasSubstr("`think`: the model's"));
}

}  // namespace
}  // namespace strata::serve
