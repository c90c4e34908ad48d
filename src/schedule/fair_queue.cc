#include "schedule/fair_queue.h"

#include <algorithm>

namespace strata {

Sequence& FairQueue::Level::next() const {
  const Client* first = nullptr;
  for (const auto& [id, client] : clients) {
    if (client.waiting.empty()) continue;
    if (first == nullptr || client.charged < first->charged) first = &client;
  }
  return *first->waiting.front();
}

FairQueue::Client& FairQueue::Level::returning(std::uint64_t id) {
  Client& client = clients[id];
  // Time without anything to compute earns nothing.
  if (client.waiting.empty()) client.charged = std::max(client.charged, now);
  ++waiting;
  return client;
}

void FairQueue::push_back(Sequence& sequence) {
  levels_[sequence.priority].returning(sequence.client).waiting.push_back(&sequence);
}

void FairQueue::push_front(Sequence& sequence) {
  levels_[sequence.priority].returning(sequence.client).waiting.push_front(&sequence);
}

void FairQueue::remove(const Sequence& sequence) {
  const auto found = levels_.find(sequence.priority);
  if (found == levels_.end()) return;
  Level& level = found->second;
  if (const auto client = level.clients.find(sequence.client); client != level.clients.end())
    level.waiting -= std::erase(client->second.waiting, &sequence);
  if (level.waiting == 0) levels_.erase(found);
}

void FairQueue::charge(std::int32_t priority, std::uint64_t client, std::int64_t rows) {
  const auto found = levels_.find(priority);
  if (found == levels_.end()) return;
  Level& level = found->second;
  Client& charged = level.clients[client];
  level.now = std::max(level.now, charged.charged);
  charged.charged = level.now + rows;
  std::erase_if(level.clients, [&](const auto& entry) {
    return entry.second.waiting.empty() && entry.second.charged <= level.now;
  });
}

std::int64_t FairQueue::charged(std::int32_t priority, std::uint64_t client) const {
  const auto level = levels_.find(priority);
  if (level == levels_.end()) return 0;
  const auto found = level->second.clients.find(client);
  return found == level->second.clients.end() ? level->second.now : found->second.charged;
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
