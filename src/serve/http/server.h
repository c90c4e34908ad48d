// An HTTP/1.1 server for local APIs: one thread for all sockets, a few for the handlers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/status.h"
#include "serve/http/exchange.h"
#include "serve/http/message.h"
#include "serve/http/options.h"

namespace strata::http {

struct ServerStats {
  std::size_t connections = 0;
  std::size_t queued = 0;          // requests that wait for a worker
  std::uint64_t requests = 0;      // handed to the handler's queue
  std::uint64_t refused = 0;       // requests and connections that the server answered itself
  std::uint64_t disconnected = 0;  // clients that went before their answer was complete
  std::uint64_t slow = 0;          // of these, dropped for reading too slowly
};

// Of the requests that were under way when the server was told to stop.
struct StopReport {
  std::size_t finished = 0;
  std::size_t cut = 0;  // that had no answer, or not the whole, at the end of their time
};

// Called by several threads at a time; may take long, but not wait for another request's handler.
// The exchange may be kept and answered by any thread later.
using Handler = std::function<void(HttpRequest, std::shared_ptr<Exchange>)>;

class Server {
 public:
  // Listens when it returns.
  static Result<std::unique_ptr<Server>> start(ServerOptions options, Handler handler);
  ~Server();  // stop() without grace
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  std::uint16_t port() const;
  ServerStats stats() const;

  // Listens no more and answers further requests of open connections with 503. Gives those under
  // way `grace` to end, tells the clients of the rest so, for which there is a second, and returns
  // when no handler runs. REQUIRES: no handler or callback of this server calls it.
  StopReport stop(std::chrono::milliseconds grace);

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace strata::http
