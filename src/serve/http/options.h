// What a server listens on, whom it serves and where its limits are.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"

namespace strata::http {

// Connections beyond ServerOptions::max_connections whose clients may send on while they read the
// refusal.
constexpr std::size_t kMostRefusing = 64;

struct ServerOptions {
  std::string address = "127.0.0.1";  // IPv4, IPv6, or a name of this machine; "::" takes both
  std::uint16_t port = 0;             // 0: any free one

  // Beyond these a client gets 413, 431 or 503.
  Bytes max_body_bytes = 32 * kMiB;
  Bytes max_header_bytes = 64 * kKiB;  // request line and headers together
  Bytes max_ahead_bytes =
      kMiB;  // behind a request that is not answered yet; more end the connection
  Bytes max_buffered_bytes = 256 * kMiB;  // bodies of all unanswered requests together
  std::size_t max_connections = 1024;
  std::size_t max_queued = 256;  // requests that wait for a worker

  // A client that takes longer is dropped, after 408 where it has begun a request.
  std::chrono::milliseconds header_timeout{10'000};  // from a request's first byte to its body
  std::chrono::milliseconds body_timeout{60'000};
  std::chrono::milliseconds idle_timeout{75'000};  // before and between requests
  // From then on a connection without a whole head is closed where another needs its place.
  std::chrono::milliseconds spare_idle{1'000};
  std::chrono::milliseconds write_timeout{30'000};  // without taking a byte of what waits for it

  Bytes stream_buffer_bytes = 4 * kMiB;  // a stream whose client is further behind is dropped
  std::chrono::milliseconds keep_alive_interval{8'000};

  int workers = 2;  // threads that call the handler

  // Besides loopback names and addresses and the address the client reached. "*": every name.
  // Pages of other sites could otherwise reach the server through names that they control.
  std::vector<std::string> allowed_hosts;
  // Besides loopback origins and the server's own. "*": every origin.
  std::vector<std::string> allowed_origins;

  // Those of a path, as OPTIONS tells them.
  std::function<std::string(const std::string& path)> methods = [](const std::string&) {
    return "GET, HEAD, POST, DELETE, OPTIONS";
  };

  // What an error that the server itself answers with has for a body at this path; nothing: as
  // error_response() makes it.
  std::function<std::optional<std::string>(const std::string& path, const std::string& message)>
      error_body = {};

  std::vector<std::string> api_keys;                  // empty: none is asked for
  std::vector<std::string> open_paths = {"/health"};  // that need no key
};

}  // namespace strata::http
