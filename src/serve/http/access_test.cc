#include "serve/http/access.h"

#include <gmock/gmock.h>

#include "serve/http/test_support.h"

namespace strata::http {
namespace {

IncomingRequest request_with(std::string host, Fields headers = {}, std::string path = "/") {
  IncomingRequest incoming;
  incoming.is_http11 = true;
  incoming.authority = std::move(host);
  incoming.request.method = "GET";
  incoming.request.path = std::move(path);
  incoming.request.headers = std::move(headers);
  return incoming;
}

int status_for(const ServerOptions& options, const IncomingRequest& incoming) {
  const auto answer = AccessRules(options).check(incoming, "192.168.1.5");
  return answer ? answer->status : 200;
}

TEST(Access, NamesOfOtherMachinesAreRefused) {
  ServerOptions options;
  for (const char* host : {"localhost", "LOCALHOST:8080", "127.0.0.1:80", "[::1]:80",
                           "192.168.1.5:80", "[::ffff:192.168.1.5]"})
    EXPECT_EQ(status_for(options, request_with(host)), 200) << host;
  for (const char* host : {"", "evil.com", "localhost.evil.com", "192.168.1.6",
                           "127.0.0.1.evil.com", "localhost evil.com", "[::1", "a\xff"})
    EXPECT_EQ(status_for(options, request_with(host)), 403) << host;
  options.allowed_hosts = {"Box.lan"};
  EXPECT_EQ(status_for(options, request_with("box.lan:8080")), 200);
  EXPECT_EQ(status_for(options, request_with("evil.com")), 403);
  options.allowed_hosts = {"*"};
  EXPECT_EQ(status_for(options, request_with("evil.com")), 200);
}

TEST(Access, PagesOfOtherSitesAreRefused) {
  ServerOptions options;
  const auto from = [&](const char* origin) {
    return status_for(options, request_with("192.168.1.5:8080", {{"origin", origin}}));
  };
  for (const char* origin : {"http://localhost", "https://localhost:3000", "http://127.0.0.1:80",
                             "http://[::1]:3000", "http://192.168.1.5:8080"})
    EXPECT_EQ(from(origin), 200) << origin;
  for (const char* origin : {"null", "", "http://evil.com", "http://localhost.evil.com",
                             "http://192.168.1.5:8081", "file://localhost", "http://"})
    EXPECT_EQ(from(origin), 403) << origin;
  options.allowed_origins = {"https://App.example", "app://obsidian.md"};
  EXPECT_EQ(from("https://app.example"), 200);
  EXPECT_EQ(from("app://obsidian.md"), 200);
  EXPECT_EQ(from("https://evil.com"), 403);
  options.allowed_origins = {"*"};
  EXPECT_EQ(from("null"), 200);
}

TEST(Access, KeysAreAskedFor) {
  ServerOptions options;
  options.api_keys = {"first", "second key"};
  const auto with = [&](Fields headers, const char* path = "/v1") {
    return status_for(options, request_with("localhost", std::move(headers), path));
  };
  EXPECT_EQ(with({{"Authorization", "Bearer first"}}), 200);
  EXPECT_EQ(with({{"authorization", "bearer  second key"}}), 200);
  EXPECT_EQ(with({{"X-Api-Key", "first"}}), 200);
  EXPECT_EQ(with({{"Authorization", "Basic eDp5"}, {"X-Api-Key", "first"}}), 200);
  EXPECT_EQ(with({}, "/health"), 200);
  for (const char* path : {"/health/", "/Health", "/v1"}) EXPECT_EQ(with({}, path), 401) << path;
  for (const char* value : {"Bearer", "Bearer ", "Bearer firs", "Bearer first1",
                            "Bearer firstfirst", "Basic first", "first", "Bearer FIRST"})
    EXPECT_EQ(with({{"Authorization", value}}), 401) << value;
  EXPECT_EQ(with({{"x-api-key", ""}}), 401);
  options.api_keys = {""};
  EXPECT_EQ(with({{"x-api-key", ""}}), 401);
}

TEST(Access, RefusalsSayWhatToDoAndKeepTheConnection) {
  ServerOptions options;
  options.api_keys = {"key"};
  const auto server = start_test_server(echo, options);
  TestClient client(server->port());
  const TestAnswer answer = client.ask(get("/"));
  EXPECT_EQ(answer.status, 401);
  EXPECT_EQ(answer.header("WWW-Authenticate"), "Bearer");
  EXPECT_THAT(answer.body, testing::HasSubstr(R"("type":"authentication_error")"));
  EXPECT_EQ(client.ask(get("/", "x-api-key: key\r\n")).status, 200);
  // A body is not waited for, nor read as a request.
  EXPECT_EQ(client.ask("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n").status,
            401);
  client.send(get("/", "x-api-key: key\r\n"));
  EXPECT_TRUE(client.ended());
}

TEST(Access, PreflightsNeedNoKeyAndPagesReadTheAnswers) {
  ServerOptions options;
  options.api_keys = {"key"};
  const auto server = start_test_server(echo, options);
  TestClient client(server->port());
  const TestAnswer preflight = client.ask(
      "OPTIONS /v1 HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost:3000\r\n"
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization, content-type\r\n\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.header("Access-Control-Allow-Origin"), "http://localhost:3000");
  EXPECT_EQ(preflight.header("Access-Control-Allow-Headers"), "authorization, content-type");
  EXPECT_THAT(preflight.header("Access-Control-Allow-Methods"), testing::HasSubstr("DELETE"));
  const std::string origin = "Origin: http://localhost:3000\r\n";
  for (const std::string& key : {std::string("x-api-key: key\r\n"), std::string()}) {
    const TestAnswer answer = client.ask(get("/v1", origin + key));
    EXPECT_EQ(answer.status, key.empty() ? 401 : 200);
    EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "http://localhost:3000");
    EXPECT_EQ(answer.header("Vary"), "Origin");
  }
  const TestAnswer other = client.ask(get("/v1", "Origin: http://evil.com\r\n"));
  EXPECT_EQ(other.status, 403);
  EXPECT_EQ(other.header("Access-Control-Allow-Origin"), "");
}

TEST(Access, TheAddressDecidesOverTheHostHeader) {
  const auto server = start_test_server(echo);
  TestClient client(server->port());
  EXPECT_EQ(client.ask("GET http://evil.com/ HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 403);
  EXPECT_EQ(client.ask("GET http://localhost/a HTTP/1.1\r\nHost: evil.com\r\n\r\n").body,
            "GET /a ");
}

}  // namespace
}  // namespace strata::http
