#include "serve/http/client.h"

#include <gtest/gtest.h>

#include <future>
#include <random>

#include "serve/http/response_reader.h"
#include "serve/http/test_support.h"

namespace strata::http {
namespace {

using Reading = ResponseReader::State;

struct Read {
  Reading state;
  int status;
  std::string body;
  auto operator<=>(const Read&) const = default;
};

// The response in pieces of so many bytes, and then the end of the connection.
Read read_in_pieces(std::string_view bytes, std::size_t piece, bool ends = true) {
  ResponseReader reader;
  Read read{Reading::kHead, 0, {}};
  for (std::size_t at = 0; at < bytes.size(); at += piece)
    read.state = reader.feed(bytes.substr(at, piece), read.body);
  if (ends && read.state < Reading::kDone) read.state = reader.end();
  read.status = reader.status();
  return read;
}

TEST(ResponseReader, ReadsEveryFramingInWhateverPiecesItComes) {
  const std::pair<std::string_view, Read> cases[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
       {Reading::kDone, 200, "hello"}},
      {"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n10;x=y\r\n"
       "0123456789abcdef\r\n0\r\nTrailer: 1\r\n\r\n",
       {Reading::kDone, 404, "abc0123456789abcdef"}},
      {"HTTP/1.0 200 OK\r\n\r\nuntil the end", {Reading::kDone, 200, "until the end"}},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 Nothing\r\n\r\n", {Reading::kDone, 204, ""}},
      {"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", {Reading::kDone, 200, ""}},
  };
  for (const auto& [bytes, wanted] : cases)
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece)
      EXPECT_EQ(read_in_pieces(bytes, piece), wanted) << bytes << " by " << piece;
}

TEST(ResponseReader, CallsBrokenWhatIsNoWholeResponse) {
  for (const std::string_view bytes :
       {"nonsense\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", "HTTP/1.1 200 OK\r\n", "",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\na\r\n0\r\n\r\n"})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{1000}})
      EXPECT_EQ(read_in_pieces(bytes, piece).state, Reading::kFailed) << bytes;
  EXPECT_EQ(read_in_pieces(std::string(1 << 20, 'x'), 1000, false).state, Reading::kFailed);
  EXPECT_EQ(read_in_pieces(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(1 << 20, ' '),
                1000, false)
                .state,
            Reading::kFailed);
}

TEST(ResponseReader, TakesAnyBytesAndPiecesMakeNoDifference) {
  const std::string whole =
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole;
    for (int change = 0; change < 3; ++change)
      bytes[random() % bytes.size()] =
          i % 2 == 0 ? static_cast<char>(random()) : whole[random() % whole.size()];
    EXPECT_EQ(read_in_pieces(bytes, 1 + random() % 9), read_in_pieces(bytes, bytes.size()))
        << bytes;
  }
}

ClientRequest request(std::string body, int timeout_ms = 20'000) {
  ClientRequest out;
  out.path = "/x";
  out.body = std::move(body);
  out.timeout = std::chrono::milliseconds(timeout_ms);
  return out;
}

class ClientTest : public testing::Test {
 protected:
  void serve(Handler handler) {
    server_ = start_test_server(std::move(handler));
    auto client = Client::create(fmt::format("http://127.0.0.1:{}/base/", server_->port()));
    ASSERT_TRUE(client.ok()) << client.status().message();
    client_ = std::move(client).value();
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ClientTest, AsksManyTimesAtOnce) {
  serve(echo);
  // Fewer than the server lets wait, so none is refused however slow its workers are.
  constexpr std::size_t kRequests = 250;
  ASSERT_LT(kRequests, ServerOptions().max_queued);
  std::vector<std::string> bodies(kRequests);
  int ended = 0;
  for (std::size_t i = 0; i < kRequests; ++i)
    client_->send(request(std::to_string(i)),
                  {[&, i](int status, std::string_view bytes) {
                     EXPECT_EQ(status, 200);
                     bodies[i] += bytes;
                   },
                   [&](int, Failure failure) { ended += failure == Failure::kNone ? 1 : 0; }});
  client_->run();
  EXPECT_EQ(ended, kRequests);
  for (std::size_t i = 0; i < kRequests; ++i)
    EXPECT_EQ(bodies[i], fmt::format("POST /base/x {}", i));
}

TEST_F(ClientTest, ReadsAStreamAsItComesAndLeavesItWhenToldTo) {
  std::promise<std::shared_ptr<Exchange>> promise;
  serve([&](HttpRequest, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({});
    exchange->write("first");
    promise.set_value(exchange);
  });
  std::string came;
  Client::Id id = 0;
  id = client_->send(request(""), {[&](int, std::string_view bytes) {
                                     came += bytes;
                                     client_->cancel(id);
                                   },
                                   [](int, Failure) { ADD_FAILURE() << "cancelled"; }});
  client_->run();
  EXPECT_EQ(came, "first");
  const auto exchange = promise.get_future().get();
  EXPECT_TRUE(eventually([&] { return exchange->closed(); }));
}

TEST_F(ClientTest, TellsFailuresApart) {
  serve([](HttpRequest, const std::shared_ptr<Exchange>& exchange) {
    exchange->start_stream({});
    exchange->write("never more");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  std::vector<Failure> failures;
  const auto send = [&](int milliseconds) {
    client_->send(
        request("", milliseconds),
        {[](int, std::string_view) {}, [&](int, Failure failure) { failures.push_back(failure); }});
    client_->run();
  };
  send(100);
  server_->stop(std::chrono::milliseconds(0));
  server_.reset();
  send(20'000);
  EXPECT_EQ(failures, (std::vector{Failure::kTimeout, Failure::kConnect}));
}

TEST_F(ClientTest, CallsTimersInOrderAndForgetsThoseThatAreCancelled) {
  serve(echo);
  std::string order;
  const auto now = Client::Clock::now();
  client_->at(now + std::chrono::milliseconds(20), [&] {
    order += 'b';
    client_->cancel_all();
  });
  client_->at(now + std::chrono::milliseconds(10), [&] { order += 'a'; });
  client_->at(now + std::chrono::hours(1), [&] { order += 'c'; });
  client_->run();
  EXPECT_EQ(order, "ab");
}

TEST(Client, RefusesAddressesThatItCannotAsk) {
  for (const char* const url : {"https://127.0.0.1:1", "127.0.0.1", "http://", "http://a:0",
                                "http://a:99999", "http://a:8x", "http://u@a:80", "http://a b"})
    EXPECT_EQ(Client::create(url).status().code(), StatusCode::kInvalidArgument) << url;
  EXPECT_EQ(Client::create("http://127.0.0.1:1").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace strata::http
