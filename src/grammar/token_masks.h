// Which tokens may come next, for every configuration of one grammar.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "grammar/grammar.h"
#include "grammar/simulation.h"
#include "grammar/token_table.h"

namespace strata {

// The memory that several grammars share. Thread-safe.
struct MaskRoom {
  explicit MaskRoom(Bytes bytes) : most(bytes) {}
  bool is_full() const { return used > most; }

  const Bytes most;
  std::atomic<Bytes> used{0};
};

// Made once per grammar and vocabulary, and shared by all answers. Safe to use from any thread.
//
// What a token does to a thread mostly depends on the thread's state alone, and on its stack only
// where the token ends the rule or repetition it is in; so the first part is kept per state, and
// the rest walked anew (after Dong et al., "XGrammar: Flexible and Efficient Structured Generation
// Engine for Large Language Models", 2024). Where that would cost more than to try all tokens, as
// with many threads, they are tried. Whole masks are kept as well, as long as they fit; where the
// room that grammars share is full, nothing is that can be made again.
class TokenMasks {
 public:
  // A bit per token.
  using Mask = std::vector<std::uint64_t>;

  // `room` may be null.
  TokenMasks(Grammar grammar, std::shared_ptr<const TokenTable> table,
             std::shared_ptr<MaskRoom> room = nullptr);
  ~TokenMasks();
  TokenMasks(const TokenMasks&) = delete;
  TokenMasks& operator=(const TokenMasks&) = delete;

  const Grammar& grammar() const { return grammar_; }
  const std::shared_ptr<const TokenTable>& table() const { return table_; }

  // The mask of an answer's first token.
  const std::shared_ptr<const Mask>& start() const { return start_; }
  // Tokens all of whose bytes may come next, and the ends where the answer may end. Null where
  // the grammar is too ambiguous to follow.
  std::shared_ptr<const Mask> mask(const Configuration& configuration);

  // Of memory, but for the table.
  Bytes bytes() const { return held_; }

 private:
  // What tokens do to a thread in one state, over a stack that is not known.
  struct Local {
    // Tokens behind which the thread is still in its rule or repetition, for the latter by rounds
    // ended: those with at most r are the first ends[r].
    std::vector<TokenId> tokens;
    std::vector<std::uint32_t> ends;
    Mask all;  // of the tokens, where they are many
    // Nodes at which it may leave, with the rounds that may then be ended.
    struct Exit {
      std::uint32_t node = 0;
      std::uint32_t fewest = 0;
      std::uint32_t most = 0;
    };
    std::vector<Exit> exits;
    std::size_t cost = 0;
    bool failed = false;  // the simulation overflowed
  };
  struct Cached {
    Configuration configuration;
    std::shared_ptr<const Mask> mask;
    Bytes bytes() const;
  };

  Configuration simplified(Configuration configuration) const;
  std::shared_ptr<const Mask> compute(const Configuration& configuration);
  void forget_locals();
  void forget(std::list<Cached>::iterator cached);
  void count();
  void settle();
  // Adds what the thread's state allows, then what may follow where it leaves.
  void add_thread(const Thread& thread, Mask& mask);
  const Local& local(std::uint32_t state);
  Local walk_local(std::uint32_t state);
  void add_tokens(const Local& local, std::uint32_t most_rounds, Mask& mask);
  void spend(std::size_t cost) { left_ -= std::min(cost, left_); }
  // Adds the tokens at and below a node behind which `set` can be.
  void add_below(std::uint32_t node, Simulation::Set set, Mask& mask);
  // Adds the tokens of nodes [first, end) that `set` can take, itself on the path above them.
  void add_nodes(std::uint32_t first, std::uint32_t end, Mask& mask);

  const Grammar grammar_;
  const std::shared_ptr<const TokenTable> table_;
  std::shared_ptr<const Mask> start_;
  const std::shared_ptr<MaskRoom> room_;
  std::atomic<Bytes> held_{0};

  std::mutex mutex_;  // guards all below
  std::optional<Simulation> simulation_, local_simulation_;
  std::vector<Simulation::Set> path_;
  std::unordered_map<std::uint32_t, std::unique_ptr<const Local>> locals_;
  Bytes local_bytes_ = 0;
  std::list<Cached> cache_;  // last used first
  Bytes cached_bytes_ = 0;
  std::unordered_map<std::uint64_t, std::list<Cached>::iterator> cached_;
  // What the mask in work may still cost, whatever is known already: the same configuration
  // always gets the same mask.
  std::size_t left_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> added_;  // the most rounds, by state
};

}  // namespace strata
