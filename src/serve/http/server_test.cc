#include "serve/http/server.h"

#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>

#include "serve/http/test_support.h"

namespace strata::http {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Server, AnswersWithLengthTypeAndDate) {
  const auto server = start_test_server(echo);
  TestClient client(server->port());
  const TestAnswer answer = client.ask(post("/a%20b?x=1", "body"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "POST /a b body");
  EXPECT_EQ(answer.header("Content-Length"), "14");
  EXPECT_EQ(answer.header("Content-Type"), "text/plain");
  EXPECT_THAT(answer.header("Date"), testing::EndsWith(" GMT"));
  EXPECT_EQ(answer.header("Connection"), "");
}

TEST(Server, HandlersSeeTheWholeRequest) {
  const auto server = start_test_server([](const HttpRequest& request, const auto& exchange) {
    EXPECT_EQ(request.header("x-NAME"), "value");
    EXPECT_EQ(request.header("missing"), std::nullopt);
    EXPECT_EQ(request.query_value("q"), "1");
    EXPECT_EQ(request.peer, "127.0.0.1");
    exchange->respond({204, {{"X-Extra", "a\r\nb: c"}}, "no body", "text/plain"});
  });
  TestClient client(server->port());
  const TestAnswer answer = client.ask(get("/?q=1", "X-Name: value\r\n"));
  EXPECT_EQ(answer.status, 204);
  EXPECT_EQ(answer.header("X-Extra"), "a  b: c");
  EXPECT_EQ(answer.header("Content-Length"), "");
  EXPECT_EQ(client.ask(get("/?q=1", "X-Name: value\r\n")).status, 204);
}

TEST(Server, HeadIsGetWithoutTheBody) {
  const auto server = start_test_server([](const HttpRequest& request, const auto& exchange) {
    if (request.path == "/stream") {
      exchange->start_stream({});
      exchange->write("data");
      return exchange->finish();
    }
    echo(request, exchange);
  });
  TestClient client(server->port());
  const TestAnswer answer = client.ask("HEAD /a HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.header("Content-Length"), "7");
  EXPECT_EQ(client.ask("HEAD /stream HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  EXPECT_EQ(client.ask(get("/b")).body, "GET /b ");
}

TEST(Server, OptionsNeedsNoHandler) {
  const auto server = start_test_server(echo);
  TestClient client(server->port());
  for (const char* target : {"*", "/v1/models"}) {
    const TestAnswer answer =
        client.ask(fmt::format("OPTIONS {} HTTP/1.1\r\nHost: localhost\r\n\r\n", target));
    EXPECT_EQ(answer.status, 204);
    EXPECT_THAT(answer.header("Allow"), HasSubstr("POST"));
  }
}

TEST(Server, PipelinedRequestsAreAnsweredInOrder) {
  const auto server = start_test_server([](const HttpRequest& request, const auto& exchange) {
    if (request.path == "/0") std::this_thread::sleep_for(milliseconds(20));
    echo(request, exchange);
  });
  TestClient client(server->port());
  std::string requests;
  for (int i = 0; i < 2000; ++i) requests += post(fmt::format("/{}", i), "x");
  std::thread sender([&] { client.send(requests); });
  for (int i = 0; i < 2000; ++i) ASSERT_EQ(client.read().body, fmt::format("POST /{} x", i));
  sender.join();
}

TEST(Server, PipelinedRefusalsTakeNoStack) {
  const auto server = start_test_server(echo);
  TestClient client(server->port());
  std::string requests;
  for (int i = 0; i < 5000; ++i) requests += "OPTIONS / HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::thread sender([&] { client.send(requests); });
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(client.read().status, 204);
  sender.join();
}

TEST(Server, OldClientsAreServed) {
  const auto server = start_test_server([](const HttpRequest& request, const auto& exchange) {
    if (request.path != "/stream") return echo(request, exchange);
    exchange->start_stream({});
    exchange->write("one");
    exchange->write("two");
    exchange->finish();
  });
  TestClient once(server->port());
  const TestAnswer answer = once.ask("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(answer.body, "GET /a ");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(once.ended());
  TestClient kept(server->port());
  EXPECT_EQ(kept.ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").header("Connection"),
            "keep-alive");
  const TestAnswer stream = kept.ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(stream.header("Transfer-Encoding"), "");
  EXPECT_EQ(stream.body, "onetwo");
}

TEST(Server, ClientsMayWaitForTheGoAhead) {
  const auto server = start_test_server(echo);
  TestClient client(server->port());
  client.send(
      "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
      "Content-Length: 4\r\n\r\n");
  EXPECT_EQ(client.read_head().status, 100);
  EXPECT_EQ(client.ask("body").body, "POST / body");
}

TEST(Server, ChunkedBodiesArrive) {
  const auto server = start_test_server(echo);
  TestClient client(server->port());
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbo");
  std::this_thread::sleep_for(milliseconds(5));
  client.send("dy\r\n1\r\n");
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_EQ(client.ask("!\r\n0\r\n\r\n").body, "POST / body!");
  EXPECT_EQ(client.ask(get("/next")).body, "GET /next ");
}

TEST(Server, LargeBodiesGoBothWays) {
  const auto server = start_test_server(echo);
  const std::string body(20 << 20, 'b');
  TestClient client(server->port());
  const TestAnswer answer = client.ask(post("/", body));
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body.size(), body.size() + 7);
}

TEST(Server, MalformedRequestsGetJsonAndAnEnd) {
  const auto server = start_test_server(echo);
  for (const char* bytes : {"{:\r\n\r\n", "GET / HTTP/1.1\r\n\r\n", "\x16\x03\x01\r\n\r\n"}) {
    TestClient client(server->port());
    const TestAnswer answer = client.ask(bytes);
    EXPECT_EQ(answer.status, 400) << bytes;
    EXPECT_THAT(answer.body, testing::StartsWith(R"({"error":{"message":")"));
    EXPECT_EQ(answer.header("Content-Type"), "application/json");
    EXPECT_TRUE(client.ended());
  }
  TestClient client(server->port());
  EXPECT_EQ(client.ask(get("/")).status, 200);
}

TEST(Server, HandlersThatFailAnswer500) {
  const auto server = start_test_server([](const HttpRequest& request, const auto& exchange) {
    if (request.path == "/throw") throw std::runtime_error("no");
    if (request.path == "/later") exchange->resume([exchange] { throw std::bad_alloc(); });
  });
  TestClient client(server->port());
  for (const char* path : {"/forget", "/throw", "/later"}) {
    const TestAnswer answer = client.ask(get(path));
    EXPECT_EQ(answer.status, 500);
    EXPECT_THAT(answer.body, HasSubstr("unanswered"));
  }
}

TEST(Server, OnlyTheFirstAnswerCounts) {
  const auto server = start_test_server([](const HttpRequest& request, const auto& exchange) {
    echo(request, exchange);
    exchange->respond({404, {}, "second", "text/plain"});
    exchange->start_stream({});
    exchange->write("third");
    exchange->finish();
  });
  TestClient client(server->port());
  EXPECT_EQ(client.ask(get("/a")).body, "GET /a ");
  EXPECT_EQ(client.ask(get("/b")).body, "GET /b ");
}

TEST(Server, ServesIpv6AndBothAtOnce) {
  ServerOptions options;
  options.address = "::";
  const auto server = start_test_server(echo, options);
  TestClient four(server->port());
  EXPECT_EQ(four.ask("GET /a HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").status, 200);
  TestClient six(server->port(), 0, "::1");
  if (!six.connected()) GTEST_SKIP() << "this machine has no IPv6";
  EXPECT_EQ(six.ask("GET /a HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").status, 200);
}

TEST(Server, SaysWhyItCannotListen) {
  const auto server = start_test_server(echo);
  ServerOptions options;
  options.port = server->port();
  auto second = Server::start(options, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(), HasSubstr("is in use: another program"));
  options.address = "203.0.113.1";
  EXPECT_THAT(Server::start(options, echo).status().message(), HasSubstr("no address of this"));
  options.address = "no such name";
  EXPECT_THAT(Server::start(options, echo).status().message(), HasSubstr("neither an IP address"));
  options.address = "localhost";
  options.port = 0;
  EXPECT_TRUE(Server::start(options, echo).ok());
}

TEST(Server, StopLetsRunningAnswersEnd) {
  std::atomic<bool> running{false};
  const auto server = start_test_server([&](const HttpRequest& request, const auto& exchange) {
    running = true;
    std::this_thread::sleep_for(milliseconds(50));
    echo(request, exchange);
  });
  TestClient idle(server->port());
  EXPECT_EQ(idle.ask(get("/a")).status, 200);
  running = false;
  TestClient busy(server->port());
  busy.send(get("/b") + get("/never"));
  ASSERT_TRUE(eventually([&] { return running.load(); }));
  StopReport report;
  std::thread stopper([&] { report = server->stop(std::chrono::seconds(20)); });
  const TestAnswer answer = busy.read();
  EXPECT_EQ(answer.body, "GET /b ");
  EXPECT_EQ(answer.header("Connection"), "close");
  EXPECT_TRUE(busy.ended());
  busy.close();
  EXPECT_TRUE(idle.ended());
  stopper.join();
  EXPECT_EQ(report.finished, 1u);
  EXPECT_EQ(report.cut, 0u);
  EXPECT_FALSE(TestClient(server->port()).connected());
  EXPECT_EQ(server->stats().connections, 0u);
}

TEST(Server, StopRefusesWhatComesDuringItsGrace) {
  std::atomic<bool> running{false}, go_on{false};
  const auto server = start_test_server([&](const HttpRequest& request, const auto& exchange) {
    if (request.path == "/stream") exchange->start_stream({});
    running = request.path != "/idle";
    if (running) eventually([&] { return go_on.load(); });
    if (request.path == "/stream") return exchange->finish();
    echo(request, exchange);
  });
  TestClient idle(server->port()), late(server->port()), busy(server->port());
  EXPECT_EQ(idle.ask(get("/idle")).status, 200);
  EXPECT_EQ(late.ask(get("/idle")).status, 200);
  late.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbo");
  busy.send(get("/stream"));
  ASSERT_TRUE(eventually([&] { return running.load(); }));
  StopReport report;
  std::thread stopper([&] { report = server->stop(std::chrono::seconds(20)); });
  ASSERT_TRUE(eventually([&] { return !TestClient(server->port()).connected(); }));
  const TestAnswer refused = idle.ask(get("/health"));
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.header("Retry-After"), "1");
  EXPECT_EQ(refused.header("Connection"), "close");
  EXPECT_EQ(late.ask("dy").status, 503);
  idle.close();
  late.close();
  go_on = true;
  EXPECT_TRUE(busy.read().whole);
  stopper.join();
  EXPECT_EQ(report.finished, 1u);
  EXPECT_EQ(report.cut, 0u);
}

TEST(Server, StopTellsThoseWhomItCuts) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> held;
  std::atomic<int> lost{0};
  const auto server = start_test_server([&](const HttpRequest& request, const auto& exchange) {
    StreamStart start{.error_prefix = "error: ", .error_suffix = "\nend"};
    if (request.path != "/plain") exchange->stand_by({start, {503, {}, "stopped"}});
    exchange->on_disconnect([&] { ++lost; });
    if (request.path == "/stream") {
      exchange->start_stream(start);
      exchange->write("some ");
    }
    const std::lock_guard lock(mutex);
    held.push_back(exchange);
  });
  TestClient stream(server->port()), waiting(server->port()), plain(server->port());
  TestClient partial(server->port());
  stream.send(get("/stream"));
  waiting.send(get("/waiting"));
  plain.send(get("/plain"));
  partial.send("GET / HT");
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return held.size() == 3;
  }));
  StopReport report;
  std::thread stopper([&] { report = server->stop(milliseconds(10)); });
  const TestAnswer streamed = stream.read();
  EXPECT_TRUE(streamed.whole);
  EXPECT_EQ(streamed.body, "some error: stopped\nend");
  const TestAnswer unanswered = waiting.read();
  EXPECT_EQ(unanswered.status, 503);
  EXPECT_EQ(unanswered.body, "stopped");
  for (TestClient* const client : {&plain, &partial}) {
    const TestAnswer answer = client->read();
    EXPECT_EQ(answer.status, 503);
    EXPECT_THAT(answer.body, HasSubstr("stopping"));
  }
  stopper.join();
  EXPECT_EQ(report.finished, 0u);
  EXPECT_EQ(report.cut, 3u);
  EXPECT_EQ(lost, 3);
}

TEST(Server, StopTellsWhoWaitsForAWorkerInTheFormOfItsPath) {
  ServerOptions options;
  options.workers = 1;
  options.error_body = [](const std::string& path, const std::string& message) {
    return path == "/formed" ? std::optional("form: " + message) : std::nullopt;
  };
  std::promise<void> go_on;
  std::atomic<bool> entered{false};
  const auto server = start_test_server(
      [&, hold = go_on.get_future().share()](const auto&, const auto& exchange) {
        entered = true;
        hold.wait();
        exchange->respond({});
      },
      options);
  TestClient busy(server->port()), formed(server->port()), plain(server->port());
  TestClient partial(server->port());
  busy.send(post("/", "x"));
  EXPECT_TRUE(eventually([&] { return entered.load(); }));
  formed.send(post("/formed", "x"));
  plain.send(post("/plain", "x"));
  partial.send("POST /formed HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx");
  EXPECT_TRUE(eventually([&] { return server->stats().queued == 2; }));
  std::thread stopper([&] { server->stop(milliseconds(10)); });
  for (TestClient* const client : {&formed, &partial}) {
    const TestAnswer answer = client->read();
    EXPECT_EQ(answer.status, 503);
    EXPECT_EQ(answer.header("Retry-After"), "1");
    EXPECT_THAT(answer.body, StartsWith("form: the server is stopping"));
  }
  EXPECT_THAT(plain.read().body, StartsWith(R"({"error":{"message":"the server is stopping)"));
  go_on.set_value();
  stopper.join();
}

TEST(Server, StopWaitsASecondForClientsThatReadNothing) {
  std::atomic<bool> lost{false};
  const auto server = start_test_server([&](const HttpRequest&, const auto& exchange) {
    exchange->on_disconnect([&] { lost = true; });
    exchange->start_stream({.error_suffix = "\n"});
    exchange->write(std::string(3 << 20, 'x'));
    eventually([&] { return lost.load(); });
  });
  TestClient client(server->port(), 4096);
  client.send(get("/"));
  client.read_head();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(server->stop(milliseconds(0)).cut, 1u);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  EXPECT_FALSE(client.read().whole);
}

TEST(Server, StopBreaksWhatOutlivesItsGrace) {
  std::shared_ptr<Exchange> kept;
  std::atomic<bool> lost{false};
  std::atomic<bool> running{false};
  auto server = start_test_server([&](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
    exchange->on_disconnect([&] { lost = true; });
    exchange->start_stream({});
    exchange->write("some");
    kept = std::move(exchange);
    running = true;
  });
  TestClient client(server->port());
  client.send(get("/"));
  ASSERT_TRUE(eventually([&] { return running.load(); }));
  server->stop(milliseconds(10));
  EXPECT_TRUE(lost);
  EXPECT_FALSE(client.read().whole);
  server.reset();
  EXPECT_TRUE(kept->closed());
  kept->write("into the void");
  kept->finish();
  EventBatch batch;
  batch.append(*kept, "nor so");
  batch.flush();
}

}  // namespace
}  // namespace strata::http
