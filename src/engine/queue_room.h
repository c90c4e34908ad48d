// Counts what waits for an engine against its limits.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace strata {

// Requests, and the tokens of their prompts. Not thread-safe.
struct QueueLoad {
  std::int64_t requests = 0;
  std::int64_t tokens = 0;
};

class QueueRoom {
 public:
  explicit QueueRoom(QueueLoad most) : most_(most) {}

  // kResourceExhausted where the queue holds no more; a prompt of any length finds an empty one.
  Status enter(std::int64_t tokens) {
    if (load_.requests >= most_.requests)
      return resource_exhausted(
          "{} requests wait already and the queue holds no more; try again later", load_.requests);
    if (load_.requests > 0 && load_.tokens + tokens > most_.tokens)
      return resource_exhausted(
          "{} requests with {} tokens wait already and the queue holds {}; try again later",
          load_.requests, load_.tokens, most_.tokens);
    load_.requests += 1;
    load_.tokens += tokens;
    return {};
  }
  void leave(const QueueLoad& gone) {
    load_.requests -= gone.requests;
    load_.tokens -= gone.tokens;
  }

 private:
  QueueLoad most_, load_;
};

}  // namespace strata
