// Many clients that behave badly at once, and some that do not.
#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include "serve/http/server.h"
#include "serve/http/test_support.h"

namespace strata::http {
namespace {

constexpr int kClients = 8;
constexpr int kRounds = STRATA_SLOW ? 60 : 200;

// Answers each request with its path, from another thread and in ways the path chooses.
class Answerer {
 public:
  Handler handler() {
    return [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
      if (request.path == "/direct") return exchange->respond({200, {}, request.body, "a/b"});
      exchange->on_disconnect([exchange = std::weak_ptr(exchange)] {
        const auto alive = exchange.lock();
        EXPECT_TRUE(alive == nullptr || alive->closed());
      });
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(std::move(request.body), std::move(exchange));
    };
  }

  // Streams to all that wait, as an engine would, until it is stopped.
  void work() {
    EventBatch batch;
    while (!stopped_) {
      std::deque<std::pair<std::string, std::shared_ptr<Exchange>>> taken;
      {
        const std::lock_guard lock(mutex_);
        taken.swap(waiting_);
      }
      for (const auto& [body, exchange] : taken) exchange->start_stream({});
      for (std::size_t i = 0; i < 32; ++i) {
        for (const auto& [body, exchange] : taken)
          if (i < body.size()) batch.append(*exchange, std::string_view(body).substr(i, 1));
        batch.flush();
      }
      for (const auto& [body, exchange] : taken)
        if (!body.starts_with("abandon")) batch.finish(*exchange);
      batch.flush();
    }
  }
  void stop() { stopped_ = true; }

 private:
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::shared_ptr<Exchange>>> waiting_;
  std::atomic<bool> stopped_{false};
};

std::string garbled(std::string request, std::mt19937& random) {
  for (int i = 0; i < 3; ++i) request[random() % request.size()] = static_cast<char>(random());
  return request;
}

void misbehave(std::uint16_t port, int client_number) {
  std::mt19937 random(static_cast<unsigned>(client_number));
  auto client = std::make_unique<TestClient>(port);
  for (int round = 0; round < kRounds; ++round) {
    const std::string marker = fmt::format("client {} round {}", client_number, round);
    const char* path = random() % 2 == 0 ? "/direct" : "/stream";
    const std::string request = post(path, marker);
    switch (random() % 6) {
      case 0: client->send(request.substr(0, random() % request.size())); break;
      case 1: client->send(garbled(request, random)); break;
      case 2: client->send(fmt::format("{0}{0}{0}", request)); break;
      case 3:
        client->send(request);
        client->receive();
        break;
      case 4:
        client->send(post("/stream", "abandon"));
        EXPECT_FALSE(client->read().whole);
        break;
      default: {
        const TestAnswer answer = client->ask(request);
        EXPECT_TRUE(answer.whole);
        EXPECT_EQ(answer.body, marker);
        continue;
      }
    }
    if (random() % 2 == 0) client->reset();
    client = std::make_unique<TestClient>(port);
  }
}

TEST(Storm, GoodClientsGetTheirOwnAnswers) {
  Answerer answerer;
  const auto server = start_test_server(answerer.handler());
  std::thread engine([&] { answerer.work(); });
  std::vector<std::thread> clients;
  clients.reserve(kClients);
  for (int i = 0; i < kClients; ++i) clients.emplace_back([&, i] { misbehave(server->port(), i); });
  for (std::thread& client : clients) client.join();
  EXPECT_TRUE(eventually([&] { return server->stats().connections == 0; }));
  server->stop(std::chrono::milliseconds(0));
  answerer.stop();
  engine.join();
}

}  // namespace
}  // namespace strata::http
