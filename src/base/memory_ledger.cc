#include "base/memory_ledger.h"

namespace strata {

MemoryLedger::Reservation& MemoryLedger::Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  release();
  ledger_ = std::exchange(other.ledger_, nullptr);
  owner_ = std::move(other.owner_);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void MemoryLedger::Reservation::release() {
  if (ledger_ != nullptr) ledger_->release(owner_, bytes_);
  ledger_ = nullptr;
}

Result<MemoryLedger::Reservation> MemoryLedger::reserve(const std::string& owner, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const Bytes used = used_locked();
  if (bytes > budget_ - used) {
    std::string held;
    for (const auto& [name, amount] : owners_)
      held += fmt::format("{}{} {}", held.empty() ? "" : ", ", name, human_bytes(amount));
    return resource_exhausted("{} need {} but {} of the budget of {} are left ({})", owner,
                              human_bytes(bytes), human_bytes(budget_ - used), human_bytes(budget_),
                              held.empty() ? "nothing held" : held);
  }
  owners_[owner] += bytes;
  return Reservation(this, owner, bytes);
}

void MemoryLedger::release(const std::string& owner, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const auto it = owners_.find(owner);
  if (it == owners_.end()) return;
  it->second -= bytes;
  if (it->second == 0) owners_.erase(it);
}

Bytes MemoryLedger::used_locked() const {
  Bytes used = 0;
  for (const auto& [owner, bytes] : owners_) used += bytes;
  return used;
}

Bytes MemoryLedger::used() const {
  const std::lock_guard lock(mutex_);
  return used_locked();
}

std::map<std::string, Bytes> MemoryLedger::by_owner() const {
  const std::lock_guard lock(mutex_);
  return owners_;
}

std::string human_bytes(Bytes bytes) {
  const auto scaled = [&](Bytes unit) {
    return static_cast<double>(bytes) / static_cast<double>(unit);
  };
  if (bytes >= kGiB) return fmt::format("{:.2f} GiB", scaled(kGiB));
  if (bytes >= kMiB) return fmt::format("{:.1f} MiB", scaled(kMiB));
  if (bytes >= kKiB) return fmt::format("{:.0f} KiB", scaled(kKiB));
  return fmt::format("{} bytes", bytes);
}

}  // namespace strata
