#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "serve/http/server.h"
#include "serve/http/test_support.h"

namespace strata::http {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Gives the exchange of a request to the test.
class Taker {
 public:
  Handler handler() {
    return [this](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
      const std::lock_guard lock(mutex_);
      taken_.push_back(std::move(exchange));
      arrived_.notify_all();
    };
  }
  std::shared_ptr<Exchange> take() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [this] { return !taken_.empty(); });
    auto exchange = std::move(taken_.back());
    taken_.pop_back();
    return exchange;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::shared_ptr<Exchange>> taken_;
};

TEST(Stream, ChunksComeAsTheyAreWrittenAndTheConnectionGoesOn) {
  Taker taker;
  const auto server = start_test_server(taker.handler());
  TestClient client(server->port());
  for (int round = 0; round < 3; ++round) {
    client.send(get("/"));
    const auto exchange = taker.take();
    exchange->start_stream({"text/event-stream", {{"Cache-Control", "no-store"}}, "", 200});
    const TestAnswer head = client.read_head();
    EXPECT_EQ(head.header("Content-Type"), "text/event-stream");
    EXPECT_EQ(head.header("Cache-Control"), "no-store");
    EXPECT_EQ(head.header("Transfer-Encoding"), "chunked");
    for (const char* chunk : {"one", "two"}) {
      exchange->write(chunk);
      EXPECT_EQ(client.read_chunk(), chunk);
    }
    exchange->write("");
    EXPECT_FALSE(exchange->closed());
    exchange->finish();
    EXPECT_EQ(client.read_chunk(), "");
    ASSERT_TRUE(eventually([&] { return exchange->closed(); }));
  }
}

TEST(Stream, ABatchKeepsTheOrderOfEachStream) {
  constexpr int kStreams = 20;
  Taker taker;
  const auto server = start_test_server(taker.handler());
  std::vector<std::unique_ptr<TestClient>> clients;
  std::vector<std::shared_ptr<Exchange>> streams;
  for (int i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<TestClient>(server->port()));
    clients.back()->send(get("/"));
    streams.push_back(taker.take());
    streams.back()->start_stream({});
  }
  EventBatch batch;
  std::string expected;
  for (int step = 0; step < 100; ++step) {
    for (const auto& stream : streams) batch.append(*stream, fmt::format("{},", step));
    expected += fmt::format("{},", step);
    batch.flush();
  }
  for (const auto& stream : streams) batch.finish(*stream);
  batch.flush();
  batch.flush();
  for (const auto& client : clients) {
    const TestAnswer answer = client->read();
    EXPECT_EQ(answer.body, expected);
    EXPECT_TRUE(answer.whole);
  }
}

TEST(Stream, SilentStreamsShowLife) {
  ServerOptions options;
  options.keep_alive_interval = milliseconds(20);
  Taker taker;
  const auto server = start_test_server(taker.handler(), options);
  TestClient client(server->port());
  client.send(get("/"));
  const auto exchange = taker.take();
  exchange->start_stream({"text/event-stream", {}, ": ping\n\n", 200});
  client.read_head();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.read_chunk(), ": ping\n\n");
  exchange->write("data");
  exchange->finish();
  std::string rest;
  for (std::string chunk; !(chunk = client.read_chunk()).empty();)
    if (chunk != ": ping\n\n") rest += chunk;
  EXPECT_EQ(rest, "data");
}

TEST(Stream, OpensByItselfWhereTheAnswerIsLate) {
  ServerOptions options;
  options.keep_alive_interval = milliseconds(20);
  Taker taker;
  const auto server = start_test_server(taker.handler(), options);
  const StreamStart form{.headers = {{"X-Form", "1"}},
                         .keep_alive_chunk = ": waiting\n",
                         .error_prefix = "data: ",
                         .error_suffix = "\n[DONE]\n"};
  for (const bool fails : {false, true}) {
    TestClient client(server->port());
    client.send(get("/"));
    const auto exchange = taker.take();
    exchange->stand_by({form, {503, {}, "stopped"}});
    EXPECT_EQ(client.read_head().header("X-Form"), "1");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(client.read_chunk(), ": waiting\n");
    std::string rest;
    if (fails) {
      exchange->respond({404, {}, "{}"});
    } else {
      exchange->start_stream(form);
      exchange->write("answer");
      exchange->finish();
    }
    for (std::string chunk; !(chunk = client.read_chunk()).empty();)
      if (chunk != form.keep_alive_chunk) rest += chunk;
    EXPECT_EQ(rest, fails ? "data: {}\n[DONE]\n" : "answer");
  }
}

TEST(Stream, AnAnswerInTimeKeepsItsStatus) {
  Taker taker;
  const auto server = start_test_server(taker.handler());
  TestClient client(server->port());
  client.send(get("/"));
  const auto exchange = taker.take();
  exchange->stand_by({StreamStart{.keep_alive_chunk = "."}, {}});
  exchange->respond({404, {}, "{}"});
  EXPECT_EQ(client.read().status, 404);
}

TEST(Stream, AnAbandonedStreamIsSeenToBeBroken) {
  Taker taker;
  const auto server = start_test_server(taker.handler());
  for (const char* request :
       {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    TestClient client(server->port());
    client.send(request);
    auto exchange = taker.take();
    exchange->start_stream({});
    exchange->write("part");
    client.read_head();
    exchange.reset();
    const std::string rest = client.receive_until("0\r\n\r\n");
    EXPECT_FALSE(rest.ends_with("0\r\n\r\n"));
  }
}

// How long the server took to notice that `leave` ends a connection whose request was taken.
milliseconds time_to_notice(bool stream, void (*leave)(TestClient&)) {
  Taker taker;
  const auto server = start_test_server(taker.handler());
  TestClient client(server->port());
  client.send(get("/"));
  const auto exchange = taker.take();
  std::atomic<int> called{0};
  exchange->on_disconnect([&] { ++called; });
  if (stream) {
    exchange->start_stream({});
    client.read_head();
  }
  const auto start = Clock::now();
  leave(client);
  EXPECT_TRUE(eventually([&] { return called == 1; }));
  const auto time = std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  EXPECT_TRUE(exchange->closed());
  // Who asks too late is told at once.
  exchange->on_disconnect([&] { ++called; });
  EXPECT_EQ(called, 2);
  EXPECT_EQ(server->stats().disconnected, 1u);
  return time;
}

TEST(Disconnect, IsNoticedAtOnceWhereverTheRequestIs) {
  for (const bool stream : {false, true}) {
    // The server tries nothing that could notice it later; the bound is slack for a busy machine.
    EXPECT_LT(time_to_notice(stream, [](TestClient& c) { c.close(); }).count(), 2000);
    EXPECT_LT(time_to_notice(stream, [](TestClient& c) { c.reset(); }).count(), 2000);
  }
}

TEST(Disconnect, QueuedRequestsOfClientsThatLeftAreNotHandled) {
  ServerOptions options;
  options.workers = 1;
  std::mutex gate;
  std::unique_lock closed(gate);
  std::atomic<int> entered{0};
  const auto server = start_test_server(
      [&](const HttpRequest& request, const auto& exchange) {
        ++entered;
        const std::lock_guard lock(gate);
        echo(request, exchange);
      },
      options);
  TestClient running(server->port());
  running.send(get("/a"));
  ASSERT_TRUE(eventually([&] { return entered == 1; }));
  TestClient leaving(server->port());
  leaving.send(get("/b"));
  ASSERT_TRUE(eventually([&] { return server->stats().queued == 1; }));
  leaving.close();
  ASSERT_TRUE(eventually([&] { return server->stats().disconnected == 1; }));
  closed.unlock();
  EXPECT_EQ(running.read().status, 200);
  EXPECT_EQ(running.ask(get("/c")).status, 200);
  EXPECT_EQ(entered, 2);
}

TEST(Disconnect, IsNotReportedOfCompleteAnswers) {
  Taker taker;
  const auto server = start_test_server(taker.handler());
  std::atomic<bool> called{false};
  auto token = std::make_shared<int>();
  {
    TestClient client(server->port());
    client.send(get("/"));
    const auto exchange = taker.take();
    exchange->on_disconnect([&called, token] { called = true; });
    exchange->respond({});
    EXPECT_EQ(client.read().status, 200);
    ASSERT_TRUE(eventually([&] { return token.use_count() == 1; }));
  }
  ASSERT_TRUE(eventually([&] { return server->stats().connections == 0; }));
  EXPECT_FALSE(called);
  EXPECT_EQ(server->stats().disconnected, 0u);
}

// One thread feeds all streams, as an engine does; some clients leave in the middle.
void feed(const std::vector<std::shared_ptr<Exchange>>& streams, int steps) {
  EventBatch batch;
  for (int step = 0; step < steps; ++step) {
    for (std::size_t i = 0; i < streams.size(); ++i)
      batch.append(*streams[i], fmt::format("{}:{};", i, step));
    batch.flush();
  }
  for (const auto& stream : streams) batch.finish(*stream);
  batch.flush();
}

TEST(Stream, ThreeHundredAtOnceAreNotMixedUp) {
  constexpr std::size_t kStreams = 300;
  constexpr int kSteps = 50;
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> streams(kStreams);
  std::atomic<std::size_t> taken{0};
  ServerOptions options;
  options.max_queued = kStreams;
  const auto server = start_test_server(
      [&](const HttpRequest& request, std::shared_ptr<Exchange> exchange) {
        exchange->start_stream({});
        const std::lock_guard lock(mutex);
        streams.at(std::stoul(request.path.substr(1))) = std::move(exchange);
        ++taken;
      },
      options);
  std::vector<std::unique_ptr<TestClient>> clients;
  for (std::size_t i = 0; i < kStreams; ++i) {
    clients.push_back(std::make_unique<TestClient>(server->port()));
    ASSERT_TRUE(clients.back()->send(get(fmt::format("/{}", i))));
  }
  ASSERT_TRUE(eventually([&] { return taken == kStreams; }));
  std::thread engine([&] { feed(streams, kSteps); });
  for (std::size_t i = 0; i < kStreams; i += 7) clients[i]->close();
  for (std::size_t i = 0; i < kStreams; ++i) {
    if (i % 7 == 0) continue;
    std::string expected;
    for (int step = 0; step < kSteps; ++step) expected += fmt::format("{}:{};", i, step);
    const TestAnswer answer = clients[i]->read();
    EXPECT_TRUE(answer.whole);
    EXPECT_EQ(answer.body, expected);
  }
  engine.join();
  clients.clear();
  EXPECT_TRUE(eventually([&] { return server->stats().connections == 0; }));
}

}  // namespace
}  // namespace strata::http
