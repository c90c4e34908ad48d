// StepPlan: which rows one engine step computes. Tokens and cache blocks only.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/units.h"

namespace strata {

// Layers whose cache has the same shape share one group: one pool of blocks and, per sequence, one
// block table. Entry i of a table holds positions [i * block_tokens, (i + 1) * block_tokens).
//
// A group of recurrent states has blocks for every position: one holds what a sequence's computed
// rows left behind, so that it cannot go back but by a copy.
constexpr std::int32_t kEveryPosition = std::numeric_limits<std::int32_t>::max();
struct CacheGroup {
  std::int32_t block_tokens = 0;
  std::int32_t blocks = 0;  // blocks in the group's pool
  std::int32_t window = 0;  // a row at position p sees positions > p - window; 0: all before it
  bool is_state() const { return block_tokens == kEveryPosition; }
};

// The rows of one sequence in a step: consecutive positions from `first`.
struct SequenceSlice {
  SequenceId sequence;
  Position first = 0;
  std::span<const TokenId> tokens;                     // one row each
  std::vector<std::uint8_t> wants_logits;              // one flag per row
  std::vector<std::span<const BlockId>> block_tables;  // one per cache group; freed entries invalid
};

struct BlockCopy {
  std::int32_t group = 0;
  BlockId from;
  BlockId to;
};

// Spans point into the scheduler and stay valid until its next call.
struct StepPlan {
  std::vector<BlockCopy> copies;  // done in this order, before any row
  std::vector<SequenceSlice> slices;
  std::int32_t rows = 0;          // of all slices
  std::int32_t logit_rows = 0;    // rows that want logits, in slice order
  std::int32_t stretch_rows = 0;  // rows of sequences that had more than one to compute
  bool empty() const { return slices.empty(); }
};

}  // namespace strata
