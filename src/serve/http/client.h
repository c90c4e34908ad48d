// An HTTP client for many requests at a time: one thread, callbacks, and timers beside them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"
#include "serve/http/message.h"

namespace strata::http {

enum class Failure : std::uint8_t {
  kNone,
  kConnect,    // no connection came about
  kTimeout,    // the answer was not complete in time
  kClosed,     // the connection ended before the answer did
  kMalformed,  // what came is no HTTP
};

struct ClientRequest {
  std::string method = "POST";
  std::string path;
  std::string body;
  Fields headers;  // besides Host, Connection, Content-Type and Content-Length
  std::chrono::milliseconds timeout{std::chrono::minutes(10)};
};

struct ClientHandlers {
  // The body of the answer as it comes.
  std::function<void(int status, std::string_view bytes)> on_body;
  // Once, at the end; `status` is 0 where no answer came.
  std::function<void(int status, Failure failure)> on_end;
};

// Every request has a connection of its own: where a server gives each connection a thread, idle
// ones would take threads from those that wait. REQUIRES: one thread uses it.
class Client {
 public:
  using Clock = std::chrono::steady_clock;
  using Id = std::uint64_t;

  // For "http://HOST[:PORT][/PATH]", where something must listen; PATH goes before every path.
  static Result<std::unique_ptr<Client>> create(std::string_view url);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Id send(ClientRequest request, ClientHandlers handlers);
  // Closes the connection; its handlers are not called any more.
  void cancel(Id id);
  void at(Clock::time_point time, std::function<void()> work);

  // Calls handlers and timers until there is nothing to wait for.
  void run();
  // Cancels all requests and timers.
  void cancel_all();

  struct Text {
    int status = 0;
    std::string body;
  };
  // One request and its whole answer. REQUIRES: nothing else is under way.
  Result<Text> ask(ClientRequest request);

 private:
  class Impl;
  explicit Client(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::http
