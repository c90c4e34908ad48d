#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "serve/http/server.h"
#include "serve/http/test_support.h"

namespace strata::http {
namespace {

using std::chrono::milliseconds;

// Keeps every exchange until it is told to answer.
class Holder {
 public:
  Handler handler() {
    return [this](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(exchange));
    };
  }
  std::size_t held() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }
  void answer() {
    const std::lock_guard lock(mutex_);
    for (const auto& exchange : held_) exchange->respond({});
    held_.clear();
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Exchange>> held_;
};

TEST(Limits, BodiesAndHeaders) {
  ServerOptions options;
  options.max_body_bytes = 1000;
  options.max_header_bytes = 1000;
  const auto server = start_test_server(echo, options);
  // Clients that send on after the refusal read it all the same.
  const std::string rest(1 << 20, 'x');
  TestClient body(server->port());
  EXPECT_EQ(body.ask(post("/", rest)).status, 413);
  TestClient chunked(server->port());
  EXPECT_EQ(chunked
                .ask("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "100000\r\n" +
                     rest)
                .status,
            413);
  TestClient header(server->port());
  EXPECT_EQ(header.ask("GET / HTTP/1.1\r\nName: " + rest).status, 431);
  EXPECT_EQ(server->stats().refused, 3u);
  EXPECT_EQ(server->stats().requests, 0u);
}

TEST(Limits, BodiesTogether) {
  ServerOptions options;
  options.max_buffered_bytes = 1000;
  Holder holder;
  const auto server = start_test_server(holder.handler(), options);
  TestClient first(server->port());
  first.send(post("/", std::string(600, 'x')));
  ASSERT_TRUE(eventually([&] { return holder.held() == 1; }));
  TestClient second(server->port());
  const TestAnswer refused = second.ask(post("/", std::string(600, 'x')));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  TestClient chunked(server->port());
  EXPECT_EQ(chunked
                .ask("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                     "258\r\n" +
                     std::string(600, 'x'))
                .status,
            503);
  holder.answer();
  EXPECT_EQ(first.read().status, 200);
  TestClient third(server->port());
  third.send(post("/", std::string(600, 'x')));
  ASSERT_TRUE(eventually([&] { return holder.held() == 1; }));
  holder.answer();
  EXPECT_EQ(third.read().status, 200);
}

TEST(Limits, BodiesCountAsLongAsSomebodyReadsThem) {
  ServerOptions options;
  options.max_buffered_bytes = 1000;
  options.workers = 1;
  std::promise<void> go_on;
  const std::shared_future<void> hold = go_on.get_future().share();
  std::atomic<int> handled = 0;
  const auto server = start_test_server(
      [&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
        ++handled;
        hold.wait();
        exchange->respond({});
      },
      options);
  for (int i = 0; i < 2; ++i) {  // one is read, the other waits for that, and both clients go
    TestClient client(server->port());
    client.send(post("/", std::string(450, 'x')));
    ASSERT_TRUE(eventually([&] { return server->stats().requests == i + 1u; }));
  }
  ASSERT_TRUE(eventually([&] { return server->stats().disconnected == 2; }));
  TestClient third(server->port());
  EXPECT_EQ(third.ask(post("/", std::string(450, 'x'))).status, 503);
  go_on.set_value();
  EXPECT_TRUE(eventually([&] {
    TestClient client(server->port());
    return client.ask(post("/", std::string(450, 'x'))).status == 200;
  }));
  EXPECT_GE(handled, 2);
}

TEST(Limits, WhatIsSentBehindARequest) {
  ServerOptions options;
  options.max_ahead_bytes = 1000;
  Holder holder;
  const auto server = start_test_server(holder.handler(), options);
  TestClient client(server->port());
  client.send(get("/"));
  ASSERT_TRUE(eventually([&] { return holder.held() == 1; }));
  for (int i = 0; i < 10; ++i) client.send(get("/"));
  EXPECT_EQ(server->stats().disconnected, 0u);
  std::string many;
  while (many.size() < 2000) many += get("/");
  client.send(many);
  EXPECT_TRUE(eventually([&] { return server->stats().disconnected == 1; }));
  holder.answer();
}

TEST(Limits, Connections) {
  ServerOptions options;
  options.max_connections = 2;
  options.spare_idle = std::chrono::hours(1);
  const auto server = start_test_server(echo, options);
  TestClient first(server->port());
  auto second = std::make_unique<TestClient>(server->port());
  EXPECT_EQ(first.ask(get("/")).status, 200);
  EXPECT_EQ(second->ask(get("/")).status, 200);
  TestClient third(server->port());
  const TestAnswer refused = third.read();
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.header("Connection"), "close");
  third.close();
  second.reset();
  ASSERT_TRUE(eventually([&] { return server->stats().connections == 1; }));
  TestClient fourth(server->port());
  EXPECT_EQ(fourth.ask(get("/")).status, 200);
}

TEST(Limits, TheConnectionThatIsIdleLongestGivesWay) {
  ServerOptions options;
  options.max_connections = 3;
  options.spare_idle = milliseconds(0);
  Holder holder;
  const auto server = start_test_server(
      [&](const HttpRequest& request, std::shared_ptr<Exchange> exchange) {
        if (request.path == "/hold")
          holder.handler()(request, std::move(exchange));
        else
          echo(request, exchange);
      },
      options);
  TestClient busy(server->port()), begun(server->port()), idle(server->port());
  busy.send(get("/hold"));
  begun.send("GET / HT");
  EXPECT_EQ(idle.ask(get("/")).status, 200);
  ASSERT_TRUE(eventually([&] { return holder.held() == 1; }));
  TestClient next(server->port());
  EXPECT_EQ(next.ask(get("/")).status, 200);
  EXPECT_EQ(idle.receive(), "") << "it is closed";
  TestClient last(server->port());
  EXPECT_EQ(last.ask(get("/")).status, 200);
  EXPECT_EQ(next.receive(), "");
  begun.send("TP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(begun.read().status, 200);
  TestClient slow(server->port()), slower(server->port());
  slow.send("GET / HT");
  slower.send("GET / HT");
  EXPECT_TRUE(eventually([&] { return TestClient(server->port()).ask(get("/")).status == 200; }))
      << "a head that does not come gives way too";
  holder.answer();
  EXPECT_EQ(busy.read().status, 200);
}

TEST(Limits, HoweverManyConnectionsComeEachIsTold) {
  ServerOptions options;
  options.max_connections = 1;
  options.spare_idle = std::chrono::hours(1);
  const auto server = start_test_server(echo, options);
  TestClient first(server->port());
  EXPECT_EQ(first.ask(get("/")).status, 200);
  std::vector<std::unique_ptr<TestClient>> crowd;
  for (int i = 0; i < 150; ++i) crowd.push_back(std::make_unique<TestClient>(server->port()));
  for (const auto& client : crowd) {
    const TestAnswer refused = client->read();
    EXPECT_EQ(refused.status, 503);
    EXPECT_TRUE(refused.whole);
    EXPECT_EQ(refused.header("Retry-After"), "1");
    EXPECT_THAT(refused.body, testing::HasSubstr("too many connections"));
  }
  EXPECT_EQ(server->stats().refused, crowd.size());
  EXPECT_EQ(first.ask(get("/")).status, 200);
}

TEST(Limits, WaitingRequests) {
  ServerOptions options;
  options.workers = 1;
  options.max_queued = 1;
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
  TestClient waiting(server->port());
  waiting.send(get("/b"));
  ASSERT_TRUE(eventually([&] { return server->stats().queued == 1; }));
  TestClient refused(server->port());
  const TestAnswer answer = refused.ask(get("/c"));
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.header("Retry-After"), "1");
  closed.unlock();
  EXPECT_EQ(running.read().body, "GET /a ");
  EXPECT_EQ(waiting.read().body, "GET /b ");
  EXPECT_EQ(refused.ask(get("/d")).body, "GET /d ");
}

TEST(Limits, SlowSendersAreDropped) {
  ServerOptions options;
  options.header_timeout = options.body_timeout = milliseconds(100);
  const auto server = start_test_server(echo, options);
  TestClient header(server->port());
  TestClient body(server->port());
  body.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n");
  header.send("GET / HTTP/1.1\r\n");
  // A byte now and then is no reason to wait longer.
  const auto start = std::chrono::steady_clock::now();
  for (bool open = true; open && std::chrono::steady_clock::now() - start < milliseconds(200);) {
    open = header.send("A") && body.send("A");
    std::this_thread::sleep_for(milliseconds(5));
  }
  EXPECT_EQ(header.read().status, 408);
  EXPECT_EQ(body.read().status, 408);
}

TEST(Limits, IdleConnectionsAreClosed) {
  ServerOptions options;
  options.idle_timeout = milliseconds(50);
  const auto server = start_test_server(echo, options);
  TestClient silent(server->port());
  TestClient served(server->port());
  EXPECT_EQ(served.ask(get("/")).status, 200);
  EXPECT_TRUE(silent.ended());
  EXPECT_TRUE(served.ended());
}

TEST(Limits, ReadersThatStopAreDropped) {
  ServerOptions options;
  options.write_timeout = milliseconds(100);
  const auto server = start_test_server(
      [](const HttpRequest&, const auto& exchange) {
        exchange->respond({200, {}, std::string(32 << 20, 'x'), "text/plain"});
      },
      options);
  TestClient client(server->port(), 4096);
  client.send(get("/"));
  ASSERT_TRUE(eventually([&] { return server->stats().slow == 1; }));
  EXPECT_FALSE(client.read().whole);
}

TEST(Limits, AStreamThatEndsAtOnceIsLimitedToo) {
  ServerOptions options;
  options.stream_buffer_bytes = 100'000;
  std::atomic<bool> lost{false};
  const auto server = start_test_server(
      [&](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
        exchange->on_disconnect([&] { lost = true; });
        exchange->start_stream({});
        EventBatch batch;
        for (int i = 0; i < 20'000; ++i) batch.append(*exchange, std::string(1000, 'x'));
        batch.finish(*exchange);
        batch.flush();
        eventually([&] { return exchange->closed(); });
      },
      options);
  TestClient client(server->port(), 4096);
  client.send(get("/"));
  ASSERT_TRUE(eventually([&] { return lost.load(); }));
  EXPECT_EQ(server->stats().slow, 1u);
  EXPECT_FALSE(client.read().whole);
}

TEST(Limits, SlowReadersOfStreamsAreDroppedAndTheOthersGoOn) {
  ServerOptions options;
  options.stream_buffer_bytes = 100'000;
  std::atomic<bool> lost{false};
  std::atomic<bool> ended{false};
  std::vector<std::thread> writers;
  const auto server = start_test_server(
      [&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
        exchange->start_stream({});
        if (request.path == "/slow") exchange->on_disconnect([&] { lost = true; });
        for (int i = 0; i < 10'000 && !exchange->closed(); ++i) {
          exchange->write(std::string(1000, 'x'));
          if (request.path == "/fast") std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        exchange->finish();
        if (request.path == "/slow") ended = true;
      },
      options);
  TestClient slow(server->port(), 4096);
  TestClient fast(server->port());
  slow.send(get("/slow"));
  const TestAnswer answer = fast.ask(get("/fast"));
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body.size(), 10'000'000u);
  ASSERT_TRUE(eventually([&] { return lost && ended; }));
  EXPECT_EQ(server->stats().slow, 1u);
  EXPECT_FALSE(slow.read().whole);
}

}  // namespace
}  // namespace strata::http
