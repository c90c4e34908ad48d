// Sequence: token ids, of which the first `computed` have their rows in the cache. Each step
// computes rows [computed, computed + n) of what is known, whatever those tokens are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/units.h"
#include "schedule/block_manager.h"

namespace strata {

// What a sequence's cache held when its first `position` rows were computed.
struct Checkpoint {
  Position position = 0;
  BlockTables blocks;
};

struct Sequence {
  SequenceId id;
  std::vector<TokenId> tokens;
  Position computed = 0;
  Position drafts = 0;     // known tokens at the end that a commit may take back
  Position delivered = 0;  // rows below it have delivered their logits; a recompute keeps it
  Position planned = 0;    // rows in the step under way
  std::vector<Position> logit_positions;  // ascending
  bool final_logits = true;
  std::int32_t priority = 0;
  BlockTables blocks;                   // one table per cache group; empty while waiting
  std::vector<Checkpoint> checkpoints;  // by position, ascending; none while waiting
  // The states before the step under way, where it ends in drafts that a commit may take back.
  std::optional<BlockTables> states_before_drafts;

  Position known() const { return static_cast<Position>(tokens.size()); }
  Position firm() const { return known() - drafts; }
  Position pending() const { return known() - computed; }

  // The last firm row predicts the next token, and each draft's row the one after it.
  bool wants_logits(Position position) const {
    if (position < delivered) return false;
    if (final_logits && position >= firm() - 1) return true;
    return std::binary_search(logit_positions.begin(), logit_positions.end(), position);
  }
  void drop_drafts(Position count) {
    tokens.resize(tokens.size() - static_cast<std::size_t>(count));
    drafts -= count;
  }
};

}  // namespace strata
