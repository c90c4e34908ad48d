// A client that says exactly the bytes it is told to, and a server to say them to.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/ascii.h"
#include "serve/http/server.h"

namespace strata::http {

struct TestAnswer {
  int status = 0;  // 0: the connection ended before an answer
  std::string head;
  std::string body;    // chunks put together
  bool whole = false;  // it ended as its head says

  std::string header(std::string_view name) const {
    for (const std::string_view line : split(head, '\n'))
      if (const std::size_t colon = line.find(':');
          colon != std::string_view::npos && lower_case(line.substr(0, colon)) == lower_case(name))
        return std::string(trimmed(line.substr(colon + 1)));
    return {};
  }
};

class TestClient {
 public:
  explicit TestClient(std::uint16_t port, int receive_buffer = 0, const char* address = "127.0.0.1")
      : socket_(socket(
            std::string_view(address).find(':') == std::string_view::npos ? AF_INET : AF_INET6,
            SOCK_STREAM, 0)) {
    const timeval patience{20, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (receive_buffer > 0)
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(port);
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(port);
    if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
      connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&four), sizeof(four)) == 0;
    else if (inet_pton(AF_INET6, address, &six.sin6_addr) == 1)
      connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&six), sizeof(six)) == 0;
  }
  ~TestClient() { close(); }
  TestClient(const TestClient&) = delete;
  TestClient& operator=(const TestClient&) = delete;

  bool connected() const { return connected_; }

  // False where the server is gone.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

  // The next bytes; empty at the end of the connection or after 20 s.
  std::string receive() {
    std::string bytes(65536, '\0');
    const ssize_t received = ::recv(socket_, bytes.data(), bytes.size(), 0);
    bytes.resize(received > 0 ? static_cast<std::size_t>(received) : 0);
    return bytes;
  }

  // Everything up to and with `end`; all that came where the connection ends before.
  std::string receive_until(std::string_view end) {
    std::size_t found = 0;
    while ((found = held_.find(end)) == std::string::npos)
      if (!receive_more()) return std::exchange(held_, {});
    std::string text = held_.substr(0, found + end.size());
    held_.erase(0, text.size());
    return text;
  }

  TestAnswer read_head() {
    TestAnswer answer;
    answer.head = receive_until("\r\n\r\n");
    if (answer.head.size() > 12)
      answer.status = static_cast<int>(std::strtol(answer.head.c_str() + 9, nullptr, 10));
    return answer;
  }

  // Nothing at the end of the stream.
  std::string read_chunk() {
    const std::string head = receive_until("\r\n");
    const std::size_t bytes = std::strtoul(head.c_str(), nullptr, 16);
    while (held_.size() < bytes + 2)
      if (!receive_more()) return {};
    std::string chunk = held_.substr(0, bytes);
    held_.erase(0, bytes + 2);
    last_chunk_ = bytes == 0 && head == "0\r\n";
    return chunk;
  }

  TestAnswer read(bool has_body = true) {
    TestAnswer answer = read_head();
    answer.whole = answer.status != 0;
    if (!answer.whole || !has_body || answer.status / 100 == 1 || answer.status == 204)
      return answer;
    if (answer.header("Transfer-Encoding") == "chunked") {
      last_chunk_ = false;
      for (std::string chunk; !(chunk = read_chunk()).empty();) answer.body += chunk;
      answer.whole = last_chunk_;
      return answer;
    }
    const std::string length = answer.header("Content-Length");
    const std::size_t bytes = length.empty() ? std::string::npos : std::stoul(length);
    while (held_.size() < bytes)
      if (!receive_more()) break;
    answer.body = held_.substr(0, bytes);
    answer.whole = length.empty() || answer.body.size() == bytes;
    held_.erase(0, answer.body.size());
    return answer;
  }

  TestAnswer ask(std::string_view request) {
    send(request);
    return read(!request.starts_with("HEAD"));
  }

  // Whether the server ends the connection, without another byte.
  bool ended() { return held_.empty() && !receive_more(); }

  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  // Closes with a reset, as a process that dies may.
  void reset() {
    const linger now{1, 0};
    setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close();
  }

 private:
  bool receive_more() {
    const std::string bytes = receive();
    held_ += bytes;
    return !bytes.empty();
  }

  int socket_;
  bool connected_ = false;
  std::string held_;
  bool last_chunk_ = false;
};

inline std::unique_ptr<Server> start_test_server(Handler handler, ServerOptions options = {}) {
  auto server = Server::start(std::move(options), std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status().message();
  return server.ok() ? std::move(server).value() : nullptr;
}

// Answers with the method, path and body.
inline void echo(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
  HttpResponse response;
  response.content_type = "text/plain";
  response.body = request.method + " " + request.path + " " + request.body;
  exchange->respond(std::move(response));
}

inline std::string get(std::string_view path, std::string_view headers = "") {
  return fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers);
}

inline std::string post(std::string_view path, std::string_view body,
                        std::string_view headers = "") {
  return fmt::format("POST {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n{}", path,
                     headers, body.size(), body);
}

// Whether `condition` comes true within 20 s.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 20'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace strata::http
