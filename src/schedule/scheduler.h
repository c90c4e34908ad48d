// Scheduler: decides which rows each step computes, within budgets of rows and cache blocks. It
// deals in tokens and blocks only. Continuous batching after Yu et al., "Orca" (2022); paged blocks
// and preemption by recompute after Kwon et al., "PagedAttention" (2023).
//
// A step: plan_step(), compute the plan, commit(). Between these two only commit() may change
// sequences; the other calls fail. Not thread-safe.
//
// Who comes first: sequences with one row to compute; then, for stretches of rows, the higher
// priority; within one, the client for whom fewer rows were computed; of a client, whoever came
// first. A waiting sequence that finds no room holds up those behind it, so size starves nobody.
// Where it has a higher priority than running ones, these are preempted for it. Lower priorities
// wait as long as higher ones use up the steps, but one admission in kAdmissionsPerLowest goes to
// the lowest if it has waited for kPatienceSteps, and what it admits counts as the highest from
// then on; it holds up the others only where it has waited for kStarvingSteps. Among equals each
// client has a share of max_running: who holds less goes first, and where it has waited for
// kPatienceSteps, the newest sequence of the client that holds most is preempted for it.
//
// With a prefix cache a sequence starts behind the rows that others have computed for the same
// tokens, and catches up when others overtake it; one whose next block another computes in the same
// step waits for it. The logits are the same bits either way.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "base/units.h"
#include "schedule/block_manager.h"
#include "schedule/fair_queue.h"
#include "schedule/sequence.h"
#include "schedule/step_plan.h"

namespace strata {

struct SchedulerConfig {
  std::int32_t max_rows = 512;       // rows per step
  std::int32_t max_logit_rows = 64;  // rows per step that deliver logits
  std::int32_t max_running = 64;     // sequences that hold blocks at the same time
  std::vector<CacheGroup> groups;
  // A step computes all rows of a sequence or none, and its commit ends the sequence: rows see
  // those behind them, so that none can be added.
  bool whole_sequences = false;
  // Tokens of a block of the prefix cache, which is the block of all groups but states; 0: none.
  std::int32_t prefix_tokens = 0;
  // Tokens of a prompt between the states that are saved within it, a multiple of prefix_tokens; 0:
  // none are.
  std::int32_t state_tokens = 0;
};

constexpr int kAdmissionsPerLowest = 16;
constexpr std::uint64_t kPatienceSteps = 32;
constexpr std::uint64_t kStarvingSteps = 1024;
constexpr std::uint64_t kStepsPerTakeover = 8;  // as what they preempt is recomputed

struct NewSequence {
  SequenceId id;
  std::vector<TokenId> tokens;
  std::vector<Position> logit_positions;  // rows that deliver logits too; ascending
  bool final_logits = true;               // whether the last known row delivers logits
  std::int32_t priority = 0;              // higher goes first
  std::uint64_t client = 0;               // those of equal priority take turns
  std::string_view cache_salt = {};       // only sequences of equal salt share cached prefixes
};

// What became of a planned slice. Its first `keep` rows stand; all of them, unless it ended in
// drafts. Appending, or keeping fewer, takes back every known token behind them.
struct Confirmed {
  SequenceId sequence;
  Position keep = 0;
  std::span<const TokenId> appended;
  bool finished = false;
};

// A sequence the scheduler gave up, and why.
struct Ended {
  SequenceId sequence;
  Status status;
};

struct SchedulerStats {
  std::int32_t running = 0;
  std::int32_t waiting = 0;
  std::int64_t preemptions = 0;
  std::int64_t takeovers = 0;               // of these, for a client that holds fewer slots
  std::int64_t prefix_queries = 0;          // tokens that started sequences knew
  std::int64_t prefix_hits = 0;             // those of them that were in the cache
  std::int64_t prefix_evictions = 0;        // blocks
  std::vector<std::int32_t> used_blocks;    // per cache group
  std::vector<std::int32_t> free_blocks;    // cached ones included
  std::vector<std::int32_t> cached_blocks;  // of no sequence
};

class Scheduler {
 public:
  static Result<Scheduler> create(SchedulerConfig config);

  // Queues a sequence; refuses what would not fit if it had every block to itself.
  Status add(NewSequence sequence);

  // A child with the parent's firm tokens and cache, which it shares until one of them writes.
  // `last` takes the place of the last token: n answers to one prompt fork after its first token.
  // Beyond max_running, or its client's share while others wait, the child waits and shares
  // nothing.
  Status fork(SequenceId parent, SequenceId child, std::optional<TokenId> last = std::nullopt);

  Status cancel(SequenceId id);

  // Sequences with one pending row, which may be extended by drafts.
  std::vector<SequenceId> runnable() const;

  // Replaces the drafts behind the last firm token. A step takes as many of them as fit and drops
  // the others.
  Status extend(SequenceId id, std::span<const TokenId> drafts);

  // Plans first the sequences with one pending row, then longer stretches and the queue. An empty
  // plan means that nothing is left to compute. An uncommitted step counts as failed.
  const StepPlan& plan_step();

  // Advances the planned sequences. One left out failed: its rows are not trusted, it goes back to
  // the queue and is recomputed. On an error nothing has changed.
  // A sequence that is not finished must be left with a token to compute.
  Status commit(std::span<const Confirmed> confirmed);

  // Sequences given up since the last call, as they outgrew the cache.
  std::vector<Ended> take_ended();

  // Saves where a running sequence is, for rewind(). Costs no block until the sequence moves on,
  // and is given up as soon as any sequence lacks one.
  Status checkpoint(SequenceId id);

  // Takes back the tokens behind the first `keep` and appends `then`, at least one. Rows stay
  // computed as far as the cache can go back: to `keep` itself with keys and values of every
  // position, else to the last checkpoint before it, else not at all. After fork(): a branch.
  Status rewind(SequenceId id, Position keep, std::span<const TokenId> then);

  // Whether steps leave out the last firm row of a sequence, which keeps its place and blocks.
  Status hold(SequenceId id, bool held);
  // Whether it holds a slot; false: it waits, or there is none.
  bool runs(SequenceId id) const;

  // Takes a running sequence's blocks and sends it back to the queue.
  Status force_preempt(SequenceId id);

  // Rows per sequence and step; at least 1. Whole sequences stay whole.
  void set_max_chunk(std::int32_t rows) { max_chunk_ = std::max(rows, 1); }

  // Rows per step of all sequences together that have more than one to compute. With 0 a step may
  // be empty though they wait. Whole sequences stay whole.
  void set_stretch_rows(std::int32_t rows) { stretch_rows_ = std::max(rows, 0); }

  // Sequences with one row to compute that are not held.
  std::int32_t single_rows() const;

  const Sequence* find(SequenceId id) const;
  SchedulerStats stats() const;

  // Reference counts equal table entries, nothing leaks, tables cover what rows see.
  Status check_invariants() const;

 private:
  explicit Scheduler(SchedulerConfig config);

  Status check_new(const NewSequence& sequence) const;
  Status check_whole(const NewSequence& sequence) const;
  Status check_confirmed(const Confirmed& confirmed) const;
  Status check_idle() const;
  Status check_cache(const Sequence& sequence) const;
  void apply(const Confirmed& confirmed);

  void make_way();
  void take_over();
  void plan_stretches();
  Sequence* next_running() const;
  Sequence& next_waiting();
  bool goes_first(const Sequence& waiting, const Sequence& running) const;
  bool admit(Sequence& sequence, Position limit);
  bool has_room(const Sequence& sequence, Position cached, std::int32_t above,
                const Sequence* preempted = nullptr) const;
  bool starts_now(Sequence& sequence);
  Position rows_in_budget(const Sequence& sequence, Position limit) const;
  void plan_stretch(Sequence& sequence, Position limit);
  void plan_running(std::size_t rank, Position limit);
  bool drop_checkpoint();
  bool preempt_below(std::size_t rank);
  void take_rows(Sequence& sequence, Position rows);

  void know_names(Sequence& sequence);
  Position cached_prefix(Sequence& sequence);
  void start_at(Sequence& sequence, Position position);
  bool is_being_computed(const Sequence& sequence) const;
  Position rows_before_saved_states(const Sequence& sequence) const;
  void keep_prefix(Sequence& sequence);

  void wait(Sequence& sequence);
  void run(Sequence& sequence);
  void preempt(std::size_t rank);
  void end(Sequence& sequence, Status status);
  void erase(Sequence& sequence);
  void go_back(Sequence& sequence, Position position);
  void release(Sequence& sequence);
  std::size_t rank_of(const Sequence& sequence) const;

  SchedulerConfig config_;
  BlockManager blocks_;
  std::int32_t max_chunk_;
  std::unordered_map<SequenceId, std::unique_ptr<Sequence>> sequences_;
  std::vector<Sequence*> running_;  // by rank: priority, then order of admission
  FairQueue waiting_;
  StepPlan plan_;
  std::unordered_set<BlockName> being_computed_;  // full blocks of the plan's stretches
  std::vector<Ended> ended_;
  std::int32_t stretch_rows_;
  std::uint64_t step_ = 0;
  std::int64_t admissions_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t takeovers_ = 0;
  std::int64_t prefix_queries_ = 0;
  std::int64_t prefix_hits_ = 0;
};

}  // namespace strata
