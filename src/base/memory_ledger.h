// Who holds how much of a memory budget. Reservations are made before the memory is taken.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/status.h"
#include "base/units.h"

namespace strata {

// Thread-safe. Outlives its reservations.
class MemoryLedger {
 public:
  explicit MemoryLedger(Bytes budget) : budget_(budget) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  // Held for as long as the object lives.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(MemoryLedger* ledger, std::string owner, Bytes bytes)
        : ledger_(ledger), owner_(std::move(owner)), bytes_(bytes) {}
    Reservation(Reservation&& other) noexcept { *this = std::move(other); }
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation() { release(); }
    Bytes bytes() const { return bytes_; }

   private:
    void release();
    MemoryLedger* ledger_ = nullptr;
    std::string owner_;
    Bytes bytes_ = 0;
  };

  // Fails with kResourceExhausted, naming every owner and its share, when the budget would not
  // hold.
  Result<Reservation> reserve(const std::string& owner, Bytes bytes);

  Bytes budget() const { return budget_; }
  Bytes used() const;
  std::map<std::string, Bytes> by_owner() const;

 private:
  void release(const std::string& owner, Bytes bytes);
  Bytes used_locked() const;

  const Bytes budget_;
  mutable std::mutex mutex_;
  std::map<std::string, Bytes> owners_;
};

// "1.23 GiB", "17 KiB", "12 bytes"
std::string human_bytes(Bytes bytes);

}  // namespace strata
