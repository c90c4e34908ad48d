#include "serve/http/request_parser.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace strata::http {
namespace {

using State = RequestParser::State;

// Feeds `bytes` in pieces, as a connection does: what is not taken comes again with the next piece.
std::size_t feed_pieces(RequestParser& parser, std::string_view bytes, std::size_t piece) {
  std::size_t taken = 0;
  for (std::size_t end = std::min(piece, bytes.size()); taken < bytes.size();) {
    const std::size_t step = parser.feed(bytes.substr(taken, end - taken));
    taken += step;
    if (parser.state() == State::kDone || parser.state() == State::kFailed) break;
    if (taken < end && step > 0) continue;
    if (end == bytes.size()) break;
    end = std::min(end + piece, bytes.size());
  }
  return taken;
}

int status_of(std::string_view bytes, const ServerOptions& options = {}) {
  RequestParser parser(options);
  feed_pieces(parser, bytes, bytes.size());
  return parser.state() == State::kFailed ? parser.refusal().status : 0;
}

TEST(RequestParser, RequestsAreTheSameInPiecesOfAnySize) {
  const std::string plain =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nA:  b \r\nContent-Length: 5\r\n\r\nhello";
  const std::string chunked =
      "POST /a?b=c HTTP/1.1\r\nHost: x\r\nA:  b \r\nTransfer-Encoding: Chunked\r\n\r\n"
      "2;x=y\r\nhe\r\n03\r\nllo\r\n0\r\nHost: evil\r\nAuthorization: Bearer k\r\n\r\n";
  for (const std::string& bytes : {plain, chunked})
    for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
      const ServerOptions options;
      RequestParser parser(options);
      EXPECT_EQ(feed_pieces(parser, bytes + "GET /next", piece), bytes.size());
      ASSERT_EQ(parser.state(), State::kDone);
      const IncomingRequest& incoming = parser.incoming();
      EXPECT_EQ(incoming.request.method, "POST");
      EXPECT_EQ(incoming.request.path, "/a");
      EXPECT_EQ(incoming.request.query_value("b"), "c");
      EXPECT_EQ(incoming.request.header("a"), "b");
      EXPECT_EQ(incoming.request.header("Authorization"), std::nullopt);
      EXPECT_EQ(incoming.request.body, "hello");
      EXPECT_EQ(incoming.authority, "x");
      EXPECT_TRUE(incoming.keep_alive);
    }
}

TEST(RequestParser, EmptyLinesBeforeARequestAreNoPartOfIt) {
  const std::string bytes = "\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    const ServerOptions options;
    RequestParser parser(options);
    EXPECT_EQ(feed_pieces(parser, bytes, piece), bytes.size());
    ASSERT_EQ(parser.state(), State::kDone) << piece;
    EXPECT_EQ(parser.incoming().request.path, "/a");
  }
}

TEST(RequestParser, MalformedRequestsAreRefused) {
  struct Case {
    const char* bytes;
    int status;
  };
  const std::vector<Case> cases = {
      {"\r\n\r\n\r\n\r\n\r\n\r\n", 400},
      {"GET\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: x\n\n", 505},
      {"GET / HTTP/1.1\r\nHost: x\n\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"GET / HTTP/0.9\r\n\r\n", 505},
      {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"G\x01T / HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET nowhere HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET /%zz HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nA b: y\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nA: y\x01\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 0x1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length:\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 2\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551616\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n", 413},
      {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n", 501},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, gzip\r\n\r\n", 501},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n", 501},
      {"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 501},
      {"GET / HTTP/1.1\r\nHost: x\r\nExpect: the best\r\n\r\n", 417},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\n", 415},
      {"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: identity, br\r\n\r\n", 415},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
       "10000000000000000\r\na\r\n",
       400},
      {"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na", 413},
  };
  for (const Case& test : cases) EXPECT_EQ(status_of(test.bytes), test.status) << test.bytes;
}

TEST(RequestParser, HeadersAreLimitedInOneReadAndInMany) {
  ServerOptions options;
  options.max_header_bytes = 1000;
  const std::string start = "GET / HTTP/1.1\r\nHost: x\r\n";
  std::string many = start;
  for (int i = 0; i < 100; ++i) many += "Name: value\r\n";
  const std::string one = start + "Name: " + std::string(1000, 'a') + "\r\n\r\n";
  const std::string target = "GET /" + std::string(2000, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  for (const std::string& bytes : {many + "\r\n", many, one, target})
    for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, bytes.size()}) {
      RequestParser parser(options);
      feed_pieces(parser, bytes, piece);
      ASSERT_EQ(parser.state(), State::kFailed) << piece;
      EXPECT_EQ(parser.refusal().status, 431);
    }
  EXPECT_EQ(status_of(start + "Name: " + std::string(900, 'a') + "\r\n\r\n", options), 0);
}

TEST(RequestParser, BodiesAndWhatFramesThemAreLimited) {
  ServerOptions options;
  options.max_header_bytes = 1000;
  options.max_body_bytes = 100;
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n", options), 413);
  EXPECT_EQ(status_of(head + "65\r\n", options), 413);
  std::string chunks;
  for (int i = 0; i < 101; ++i) chunks += "1\r\na\r\n";
  EXPECT_EQ(status_of(head + chunks, options), 413);
  EXPECT_EQ(status_of(head + "1;" + std::string(2000, 'a'), options), 431);
  EXPECT_EQ(status_of(head + "0\r\nA: " + std::string(2000, 'a'), options), 431);
}

TEST(RequestParser, CompleteFramesOfChunksAreLimitedLikeHeaders) {
  ServerOptions options;
  options.max_header_bytes = 1000;
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  const auto trailers = [](int lines) {
    std::string all = "1\r\na\r\n0\r\n";
    for (int i = 0; i < lines; ++i) all += "Name: value\r\n";
    return all + "\r\n";
  };
  const auto extension = [](std::size_t bytes) {
    return "1;" + std::string(bytes, 'a') + "\r\na\r\n0\r\n\r\n";
  };
  for (const std::size_t piece : {std::size_t{1}, std::size_t{100}, std::size_t{10'000}}) {
    for (const std::string& body : {trailers(100), extension(1000)}) {
      RequestParser parser(options);
      feed_pieces(parser, head + body, piece);
      ASSERT_EQ(parser.state(), State::kFailed) << piece;
      EXPECT_EQ(parser.refusal().status, 431);
    }
    for (const std::string& body : {trailers(60), extension(900)}) {
      RequestParser parser(options);
      feed_pieces(parser, head + body, piece);
      EXPECT_EQ(parser.state(), State::kDone) << piece;
    }
  }
}

TEST(RequestParser, ConnectionsStayOpenAsTheVersionSays) {
  const auto keeps = [](std::string_view bytes) {
    const ServerOptions options;
    RequestParser parser(options);
    parser.feed(bytes);
    EXPECT_EQ(parser.state(), State::kDone) << bytes;
    return parser.incoming().keep_alive;
  };
  EXPECT_TRUE(keeps("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n"));
  EXPECT_FALSE(keeps("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keeps("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
}

}  // namespace
}  // namespace strata::http
