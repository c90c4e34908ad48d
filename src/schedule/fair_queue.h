// FairQueue: who is next to be computed. Higher priorities go first; clients of one priority take
// turns by the rows computed for them, after start-time fair queueing (Goyal, Vin and Cheng, 1996),
// but those that hold their share of the slots come behind those that do not; a client's own
// sequences go first in, first out, preempted ones before. Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "schedule/sequence.h"

namespace strata {

class FairQueue {
 public:
  // `slots`: sequences that run at the same time.
  explicit FairQueue(std::int32_t slots) : slots_(slots) {}

  void push_back(Sequence& sequence);
  // Goes before all others of its client: it was preempted.
  void push_front(Sequence& sequence);
  void remove(const Sequence& sequence);

  bool empty() const { return waiting_ == 0; }
  // REQUIRES: not empty.
  Sequence& next() const { return next(highest()->second); }
  Sequence& next_of_lowest() const;
  std::int32_t highest_priority() const { return highest()->first; }

  // The sequence, which does not wait, got a slot; or has given it up.
  void start(const Sequence& sequence);
  void stop(const Sequence& sequence);
  // Slots that a client holds with sequences of that priority.
  std::int32_t slots_of(std::int32_t priority, std::uint64_t client) const;
  // Whether one more slot for its client would be beyond its share, and others of its priority
  // wait.
  bool must_wait(const Sequence& sequence) const;
  // The client that holds most slots with sequences of that priority, if they are more than its
  // share while a client without its share waits.
  std::optional<std::uint64_t> above_share(std::int32_t priority) const;

  // Rows of a stretch were computed for the client.
  void charge(std::int32_t priority, std::uint64_t client, std::int64_t rows);
  // Whether the clients' turns let `waiting` go before `running`, of the same priority.
  bool goes_first(const Sequence& waiting, const Sequence& running) const;
  // What a client was charged; no less than where the level is.
  std::int64_t charged(std::int32_t priority, std::uint64_t client) const;

  // Nobody has a stretch to compute: turns begin anew with the next that comes.
  void forget_turns();

  std::vector<const Sequence*> all() const;

 private:
  struct Client {
    std::int64_t charged = 0;
    std::int32_t slots = 0;  // that it holds
    std::deque<Sequence*> waiting;
    bool wants_slots() const { return slots > 0 || !waiting.empty(); }
  };
  struct Level {
    std::map<std::uint64_t, Client> clients;
    std::int64_t now = 0;      // what the client served last had been charged before
    std::size_t waiting = 0;   // sequences of all clients
    std::int32_t slots = 0;    // that all clients hold
    std::int32_t wanting = 0;  // clients that wait or hold slots
    Client& returning(std::uint64_t id);
  };
  using Levels = std::map<std::int32_t, Level, std::greater<>>;  // each has waiting ones or slots

  Levels::const_iterator highest() const;
  Client& joined(Sequence& sequence);
  std::int32_t share_of(const Level& level) const;
  Sequence& next(const Level& level) const;
  void drop_if_idle(Levels::iterator level);

  std::int32_t slots_;
  std::size_t waiting_ = 0;  // in all levels
  Levels levels_;
};

}  // namespace strata
