// FairQueue: who is next to be computed. Higher priorities go first; clients of one priority take
// turns by the rows computed for them, after start-time fair queueing (Goyal, Vin and Cheng, 1996);
// a client's own sequences go first in, first out, preempted ones before. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <vector>

#include "schedule/sequence.h"

namespace strata {

class FairQueue {
 public:
  void push_back(Sequence& sequence);
  // Goes before all others of its client: it was preempted.
  void push_front(Sequence& sequence);
  void remove(const Sequence& sequence);

  bool empty() const { return levels_.empty(); }
  // REQUIRES: not empty.
  Sequence& next() const { return levels_.begin()->second.next(); }
  Sequence& next_of_lowest() const { return levels_.rbegin()->second.next(); }
  std::int32_t highest_priority() const { return levels_.begin()->first; }

  // Rows of a stretch were computed for the client. Counted while anybody of that priority waits.
  void charge(std::int32_t priority, std::uint64_t client, std::int64_t rows);
  // Whether the clients' turns let `waiting` go before `running`, of the same priority.
  bool goes_first(const Sequence& waiting, const Sequence& running) const;
  // What a client was charged; no less than where the level is.
  std::int64_t charged(std::int32_t priority, std::uint64_t client) const;

  std::vector<const Sequence*> all() const;

 private:
  struct Client {
    std::int64_t charged = 0;
    std::deque<Sequence*> waiting;
  };
  struct Level {
    std::map<std::uint64_t, Client> clients;
    std::int64_t now = 0;     // what the client served last had been charged before
    std::size_t waiting = 0;  // sequences of all clients
    Sequence& next() const;
    Client& returning(std::uint64_t id);
  };

  std::map<std::int32_t, Level, std::greater<>> levels_;  // none is empty
};

}  // namespace strata
