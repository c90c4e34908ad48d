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
  std::uint64_t client = 0;
  std::uint64_t considered = 0;         // the last step that asked whether to compute rows of it
  std::uint64_t waits_since = 0;        // the step before it came to the queue
  BlockTables blocks;                   // one table per cache group; empty while waiting
  std::vector<Checkpoint> checkpoints;  // by position, ascending; none while waiting
  // The states before the step under way, where it ends in drafts that a commit may take back.
  std::optional<BlockTables> states_before_drafts;

  // The prefix cache. Names are those of the first full blocks, as many as somebody asked for.
  BlockName root;
  std::vector<BlockName> names;
  std::size_t named = 0;      // blocks of the tables that have their names
  Position first_states = 0;  // where states were saved first, and last; 0: nowhere
  Position last_states = 0;
  bool started = false;  // a step took rows of it
  bool held = false;     // steps leave out its last firm row
  Position cached = 0;   // rows that were in the cache before that
  Position first_difference = -1;

  Position known() const { return static_cast<Position>(tokens.size()); }
  Position firm() const { return known() - drafts; }
  Position pending() const { return known() - computed; }
  bool waits_at_last_row() const { return held && firm() - computed == 1; }
  bool has_single_row() const { return !held && firm() - computed == 1; }

  // The last firm row predicts the next token, and each draft's row the one after it.
  bool wants_logits(Position position) const {
    if (position < delivered) return false;
    if (final_logits && position >= firm() - 1) return true;
    return std::binary_search(logit_positions.begin(), logit_positions.end(), position);
  }
  // How many rows the cache may stand for: the last firm one is always computed, and so are those
  // whose logits are wanted.
  Position cacheable() const {
    const auto wanted = std::lower_bound(logit_positions.begin(), logit_positions.end(), delivered);
    return wanted == logit_positions.end() ? firm() - 1 : std::min(*wanted, firm() - 1);
  }
  // All that hold blocks for it.
  void add_tables(std::vector<const BlockTables*>& all) const {
    all.push_back(&blocks);
    for (const Checkpoint& saved : checkpoints) all.push_back(&saved.blocks);
    if (states_before_drafts) all.push_back(&*states_before_drafts);
  }
  // REQUIRES: that many names are known.
  NamedTokens prefix(std::size_t count) const {
    return {root, tokens, std::span(names).first(count)};
  }
  // Leaves no name of a block that tokens from `position` on are part of.
  void forget_names(Position position, std::int32_t block_tokens) {
    if (block_tokens == 0) return;
    const auto count = static_cast<std::size_t>(position / block_tokens);
    names.resize(std::min(names.size(), count));
    named = std::min(named, count);
  }
  void drop_drafts(Position count) {
    tokens.resize(tokens.size() - static_cast<std::size_t>(count));
    drafts -= count;
  }
};

}  // namespace strata
