// Two flat hash tables (open addressing, linear probing) for the tokenizer's inner loops: strings
// to ids, and pairs of ids to merges. Neither erases.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

namespace strata {

inline std::uint64_t mix_bits(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  x ^= x >> 32;
  x *= 0xd6e8feb86659fd93u;
  return x ^ (x >> 32);
}

inline std::uint64_t hash_text(std::string_view text) {
  std::uint64_t hash = text.size();
  while (text.size() >= 8) {
    std::uint64_t word;
    std::memcpy(&word, text.data(), 8);
    hash = mix_bits(hash ^ word);
    text.remove_prefix(8);
  }
  std::uint64_t tail = 0;
  for (const char c : text) tail = (tail << 8) | static_cast<unsigned char>(c);
  return mix_bits(hash ^ tail);
}

// Maps byte strings to ids >= 0. Keys are views: their bytes must outlive the table.
class TextTable {
 public:
  static constexpr std::int32_t kNone = -1;

  // Returns the id that `key` has from then on: `id`, or the one it had before.
  std::int32_t insert(std::string_view key, std::int32_t id) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[locate(key)];
    if (slot.id != kNone) return slot.id;
    slot = {key.data(), static_cast<std::uint32_t>(key.size()), id};
    ++count_;
    return id;
  }

  std::int32_t find(std::string_view key) const {
    return slots_.empty() ? kNone : slots_[locate(key)].id;
  }

 private:
  struct Slot {
    const char* data = nullptr;
    std::uint32_t size = 0;
    std::int32_t id = kNone;
  };

  std::size_t locate(std::string_view key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = hash_text(key) & mask;
    while (slots_[at].id != kNone && std::string_view(slots_[at].data, slots_[at].size) != key)
      at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.id != kNone) slots_[locate({slot.data, slot.size})] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

struct Merge {
  std::uint32_t priority;  // smaller merges first
  std::int32_t id;         // of the joined symbol
};

// Maps (left id, right id) to the merge of the two.
class PairTable {
 public:
  // Keeps the merge that is there already.
  void insert(std::int32_t left, std::int32_t right, Merge merge) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = slots_[locate(pack(left, right))];
    if (slot.key != kEmpty) return;
    slot = {pack(left, right), merge};
    ++count_;
  }

  std::optional<Merge> find(std::int32_t left, std::int32_t right) const {
    if (slots_.empty()) return std::nullopt;
    const Slot& slot = slots_[locate(pack(left, right))];
    if (slot.key == kEmpty) return std::nullopt;
    return slot.merge;
  }

  std::size_t size() const { return count_; }

 private:
  static constexpr std::uint64_t kEmpty = ~std::uint64_t{0};

  struct Slot {
    std::uint64_t key = kEmpty;
    Merge merge{};
  };

  static std::uint64_t pack(std::int32_t left, std::int32_t right) {
    return (std::uint64_t{static_cast<std::uint32_t>(left)} << 32) |
           static_cast<std::uint32_t>(right);
  }

  std::size_t locate(std::uint64_t key) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = mix_bits(key) & mask;
    while (slots_[at].key != kEmpty && slots_[at].key != key) at = (at + 1) & mask;
    return at;
  }

  void grow() {
    std::vector<Slot> old(slots_.empty() ? 1024 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old)
      if (slot.key != kEmpty) slots_[locate(slot.key)] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace strata
