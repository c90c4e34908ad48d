#include "schedule/fair_queue.h"

#include <algorithm>
#include <tuple>

namespace strata {

// What each client of a level may hold of the slots that higher levels leave.
std::int32_t FairQueue::share_of(const Level& level) const {
  std::int32_t left = slots_;
  for (const auto& [priority, higher] : levels_) {
    if (&higher == &level) break;
    left -= higher.slots;
  }
  return ceil_div(std::max(left, 1), std::max(level.wanting, 1));
}

Sequence& FairQueue::next(const Level& level) const {
  const std::int32_t share = share_of(level);
  const Client* first = nullptr;
  const auto turn = [&](const Client& client) {
    return std::tuple(client.slots >= share, client.charged);
  };
  for (const auto& [id, client] : level.clients) {
    if (client.waiting.empty()) continue;
    if (first == nullptr || turn(client) < turn(*first)) first = &client;
  }
  return *first->waiting.front();
}

FairQueue::Levels::const_iterator FairQueue::highest() const {
  return std::ranges::find_if(levels_, [](const auto& level) { return level.second.waiting > 0; });
}

Sequence& FairQueue::next_of_lowest() const {
  auto level = levels_.rbegin();
  while (level->second.waiting == 0) ++level;
  return next(level->second);
}

FairQueue::Client& FairQueue::Level::returning(std::uint64_t id) {
  Client& client = clients[id];
  // Time without anything to compute earns nothing.
  if (client.waiting.empty()) client.charged = std::max(client.charged, now);
  if (!client.wants_slots()) ++wanting;
  ++waiting;
  return client;
}

FairQueue::Client& FairQueue::joined(Sequence& sequence) {
  ++waiting_;
  return levels_[sequence.priority].returning(sequence.client);
}

void FairQueue::push_back(Sequence& sequence) { joined(sequence).waiting.push_back(&sequence); }

void FairQueue::push_front(Sequence& sequence) { joined(sequence).waiting.push_front(&sequence); }

void FairQueue::remove(const Sequence& sequence) {
  const auto found = levels_.find(sequence.priority);
  if (found == levels_.end()) return;
  Level& level = found->second;
  const auto client = level.clients.find(sequence.client);
  if (client == level.clients.end()) return;
  const std::size_t removed = std::erase(client->second.waiting, &sequence);
  if (removed == 0) return;
  if (!client->second.wants_slots()) --level.wanting;
  level.waiting -= removed;
  waiting_ -= removed;
  drop_if_idle(found);
}

void FairQueue::drop_if_idle(Levels::iterator level) {
  if (level->second.waiting == 0 && level->second.slots == 0) levels_.erase(level);
}

void FairQueue::forget_turns() {
  for (auto& [priority, level] : levels_) {
    level.now = 0;
    std::erase_if(level.clients, [](const auto& entry) { return !entry.second.wants_slots(); });
    for (auto& [id, client] : level.clients) client.charged = 0;
  }
}

void FairQueue::start(const Sequence& sequence) {
  Level& level = levels_[sequence.priority];
  Client& client = level.clients[sequence.client];
  if (!client.wants_slots()) ++level.wanting;
  ++level.slots;
  ++client.slots;
}

void FairQueue::stop(const Sequence& sequence) {
  const auto level = levels_.find(sequence.priority);
  Client& client = level->second.clients.at(sequence.client);
  --level->second.slots;
  --client.slots;
  if (!client.wants_slots()) --level->second.wanting;
  drop_if_idle(level);
}

std::int32_t FairQueue::slots_of(std::int32_t priority, std::uint64_t client) const {
  const auto level = levels_.find(priority);
  if (level == levels_.end()) return 0;
  const auto found = level->second.clients.find(client);
  return found == level->second.clients.end() ? 0 : found->second.slots;
}

bool FairQueue::must_wait(const Sequence& sequence) const {
  const auto found = levels_.find(sequence.priority);
  if (found == levels_.end()) return false;
  const Level& level = found->second;
  const auto client = level.clients.find(sequence.client);
  const std::size_t own = client == level.clients.end() ? 0 : client->second.waiting.size();
  return level.waiting > own && slots_of(sequence.priority, sequence.client) >= share_of(level);
}

std::optional<std::uint64_t> FairQueue::above_share(std::int32_t priority) const {
  const auto found = levels_.find(priority);
  if (found == levels_.end() || found->second.waiting == 0) return std::nullopt;
  const Level& level = found->second;
  const std::int32_t share = share_of(level);
  if (slots_of(priority, next(level).client) >= share) return std::nullopt;
  const auto most = std::ranges::max_element(level.clients, {},
                                             [](const auto& entry) { return entry.second.slots; });
  if (most->second.slots <= share) return std::nullopt;
  return most->first;
}

void FairQueue::charge(std::int32_t priority, std::uint64_t client, std::int64_t rows) {
  const auto found = levels_.find(priority);
  if (found == levels_.end()) return;
  Level& level = found->second;
  Client& charged = level.clients[client];
  level.now = std::max(level.now, charged.charged);
  charged.charged = level.now + rows;
  std::erase_if(level.clients, [&](const auto& entry) {
    return !entry.second.wants_slots() && entry.second.charged <= level.now;
  });
}

std::int64_t FairQueue::charged(std::int32_t priority, std::uint64_t client) const {
  const auto level = levels_.find(priority);
  if (level == levels_.end()) return 0;
  const auto found = level->second.clients.find(client);
  if (found == level->second.clients.end()) return level->second.now;
  const Client& state = found->second;
  return state.waiting.empty() ? std::max(state.charged, level->second.now) : state.charged;
}

bool FairQueue::goes_first(const Sequence& waiting, const Sequence& running) const {
  return charged(waiting.priority, waiting.client) < charged(running.priority, running.client);
}

std::vector<const Sequence*> FairQueue::all() const {
  std::vector<const Sequence*> all;
  for (const auto& [priority, level] : levels_) {
    for (const auto& [id, client] : level.clients)
      all.insert(all.end(), client.waiting.begin(), client.waiting.end());
  }
  return all;
}

}  // namespace strata
