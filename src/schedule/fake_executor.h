// FakeExecutor: a cache whose slots hold a hash instead of keys and values. Every row checks that
// it sees its own prefix in every visible slot, so that a block wrongly shared, freed or copied
// shows at once. A recurrent state is one slot, whose hash each row takes further. For tests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.h"
#include "schedule/step_plan.h"

namespace strata {

inline std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t value) {
  // The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
  std::uint64_t z = hash + 0x9e3779b97f4a7c15 * (value + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// hashes[p] stands for tokens[0..p].
inline std::vector<std::uint64_t> prefix_hashes(std::span<const TokenId> tokens) {
  std::vector<std::uint64_t> hashes;
  std::uint64_t hash = 0;
  for (const TokenId token : tokens) {
    hash = mix_hash(hash, static_cast<std::uint64_t>(token));
    hashes.push_back(hash);
  }
  return hashes;
}

// The token a sequence of this prefix continues with.
inline TokenId next_token(std::uint64_t prefix_hash) {
  return static_cast<TokenId>(mix_hash(prefix_hash, 17) % 50);
}

class FakeExecutor {
 public:
  explicit FakeExecutor(std::vector<CacheGroup> groups) : groups_(std::move(groups)) {
    for (const CacheGroup& group : groups_) {
      slots_.emplace_back(static_cast<std::size_t>(group.blocks) *
                          static_cast<std::size_t>(block_slots(group)));
    }
  }

  // `tokens_of` gives what the sequence's tokens should be, by the caller's own account.
  Status run(const StepPlan& plan,
             const std::function<std::span<const TokenId>(SequenceId)>& tokens_of) {
    for (const BlockCopy& copy : plan.copies) {
      const auto g = static_cast<std::size_t>(copy.group);
      for (std::int32_t i = 0; i < block_slots(groups_[g]); ++i) {
        slot(g, copy.to, i) = slot(g, copy.from, i);
      }
    }
    row_hashes_.clear();
    std::vector<std::vector<std::uint64_t>> hashes;
    for (const SequenceSlice& slice : plan.slices) {
      hashes.push_back(prefix_hashes(tokens_of(slice.sequence)));
      STRATA_TRY(write(slice, tokens_of(slice.sequence), hashes.back()));
    }
    for (std::size_t i = 0; i < plan.slices.size(); ++i) {
      STRATA_TRY(read(plan.slices[i], hashes[i]));
    }
    return {};
  }

  // What the row at `position` computes from the cache.
  std::uint64_t row_hash(const SequenceSlice& slice, Position position) {
    if (groups_.front().is_state()) return row_hashes_.at({slice.sequence, position});
    return *find_slot(slice, 0, position);
  }

 private:
  static std::int32_t block_slots(const CacheGroup& group) {
    return group.is_state() ? 1 : group.block_tokens;
  }

  std::uint64_t& slot(std::size_t group, BlockId block, std::int32_t offset) {
    return slots_[group].at(static_cast<std::size_t>(block.value) *
                                static_cast<std::size_t>(block_slots(groups_[group])) +
                            static_cast<std::size_t>(offset));
  }

  std::uint64_t* find_slot(const SequenceSlice& slice, std::size_t group, Position position) {
    const std::int32_t block_tokens = groups_[group].block_tokens;
    const std::span<const BlockId> table = slice.block_tables[group];
    const auto entry = static_cast<std::size_t>(position / block_tokens);
    if (entry >= table.size() || !table[entry].valid()) return nullptr;
    return &slot(group, table[entry], groups_[group].is_state() ? 0 : position % block_tokens);
  }

  Status write(const SequenceSlice& slice, std::span<const TokenId> tokens,
               const std::vector<std::uint64_t>& hashes) {
    for (std::size_t row = 0; row < slice.tokens.size(); ++row) {
      const Position position = slice.first + static_cast<Position>(row);
      if (slice.tokens[row] != tokens[static_cast<std::size_t>(position)]) {
        return internal_error("sequence {} has a foreign token at {}", slice.sequence.value,
                              position);
      }
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        std::uint64_t* target = find_slot(slice, g, position);
        if (target == nullptr) {
          return internal_error("sequence {} has no slot at {}", slice.sequence.value, position);
        }
        if (groups_[g].is_state()) {
          const std::uint64_t before = position == 0 ? 0 : *target;
          *target = mix_hash(before, static_cast<std::uint64_t>(slice.tokens[row]));
          if (*target != hashes[static_cast<std::size_t>(position)]) {
            return internal_error("group {}: sequence {} at {} has a foreign state", g,
                                  slice.sequence.value, position);
          }
          row_hashes_[{slice.sequence, position}] = *target;
          continue;
        }
        *target = hashes[static_cast<std::size_t>(position)];
      }
    }
    return {};
  }

  Status read(const SequenceSlice& slice, const std::vector<std::uint64_t>& hashes) {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (groups_[g].is_state()) continue;
      const std::int32_t window = groups_[g].window;
      const Position begin = window == 0 ? 0 : std::max(0, slice.first - window + 1);
      const auto end = slice.first + static_cast<Position>(slice.tokens.size());
      for (Position position = begin; position < end; ++position) {
        const std::uint64_t* seen = find_slot(slice, g, position);
        if (seen == nullptr || *seen != hashes[static_cast<std::size_t>(position)]) {
          return internal_error("group {}: sequence {}, rows from {}, sees a foreign slot at {}", g,
                                slice.sequence.value, slice.first, position);
        }
      }
    }
    return {};
  }

  std::vector<CacheGroup> groups_;
  std::vector<std::vector<std::uint64_t>> slots_;
  std::map<std::pair<SequenceId, Position>, std::uint64_t> row_hashes_;  // of a state, this step
};

}  // namespace strata
