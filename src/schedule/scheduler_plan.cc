// Which rows the next step computes.
#include <algorithm>
#include <limits>
#include <utility>

#include "schedule/scheduler.h"

namespace strata {
namespace {

constexpr std::int32_t kAnyPriority = std::numeric_limits<std::int32_t>::min();

}  // namespace

const StepPlan& Scheduler::plan_step() {
  if (!plan_.empty()) (void)commit({});  // committing nothing cannot fail
  plan_ = StepPlan();
  being_computed_.clear();
  ++step_;
  make_way();
  take_over();
  // A sequence may preempt others only behind it, so the ranks in front stay as they are.
  for (std::size_t rank = 0; rank < running_.size(); ++rank) {
    const Sequence& sequence = *running_[rank];
    if (sequence.has_single_row()) plan_running(rank, config_.max_rows);
  }
  plan_stretches();
  return plan_;
}

// --- Who comes next ---

// Preempts sequences of lower priority where that lets the next one in.
void Scheduler::make_way() {
  if (waiting_.empty() || running_.empty()) return;
  Sequence& next = waiting_.next();
  if (running_.back()->priority >= next.priority) return;
  const Position cached = cached_prefix(next);
  if (!has_room(next, cached, next.priority)) return;
  while (!running_.empty() && running_.back()->priority < next.priority && !starts_now(next))
    preempt(running_.size() - 1);
}

// Preempts for a client that has waited for its share of the slots, where that lets it in.
void Scheduler::take_over() {
  if (waiting_.empty() || step_ % kStepsPerTakeover != 0) return;
  Sequence& next = waiting_.next();
  if (step_ < next.waits_since + kPatienceSteps) return;
  const auto client = waiting_.above_share(next.priority);
  if (!client) return;
  const auto newest = std::find_if(running_.rbegin(), running_.rend(), [&](const Sequence* each) {
    return each->priority == next.priority && each->client == *client;
  });
  if (starts_now(next)) return;
  if (!has_room(next, cached_prefix(next), kAnyPriority, *newest)) return;
  ++takeovers_;
  preempt(rank_of(**newest));
}

// Running stretches and the queue, one after the other as long as there are rows.
void Scheduler::plan_stretches() {
  if (waiting_.empty() && next_running() == nullptr) waiting_.forget_turns();
  bool admits = true;
  while (true) {
    const std::int32_t left =
        config_.whole_sequences ? config_.max_rows : stretch_rows_ - plan_.stretch_rows;
    const Position limit = std::min(config_.max_rows - plan_.rows, left);
    Sequence* running = next_running();
    admits = admits && !waiting_.empty();
    if (limit <= 0 || (running == nullptr && !admits)) return;
    if (admits && (running == nullptr || goes_first(next_waiting(), *running))) {
      admits = admit(next_waiting(), limit);
    } else {
      plan_stretch(*running, limit);
    }
  }
}

// The running sequence whose stretch comes next in this step, or null.
Sequence* Scheduler::next_running() const {
  Sequence* best = nullptr;
  for (Sequence* sequence : running_) {
    if (best != nullptr && sequence->priority < best->priority) break;
    if (sequence->considered == step_ || sequence->waits_at_last_row()) continue;
    if (best == nullptr || waiting_.charged(sequence->priority, sequence->client) <
                               waiting_.charged(best->priority, best->client)) {
      best = sequence;
    }
  }
  return best;
}

// REQUIRES: somebody waits.
Sequence& Scheduler::next_waiting() {
  if (admissions_ % kAdmissionsPerLowest != kAdmissionsPerLowest - 1) return waiting_.next();
  Sequence& lowest = waiting_.next_of_lowest();
  const std::uint64_t waited = step_ - lowest.waits_since;
  const bool has_turn =
      waited >= kStarvingSteps || (waited >= kPatienceSteps && starts_now(lowest));
  return has_turn ? lowest : waiting_.next();
}

// Whether there are a slot and blocks for it.
bool Scheduler::starts_now(Sequence& sequence) {
  return running_.size() < static_cast<std::size_t>(config_.max_running) &&
         has_room(sequence, cached_prefix(sequence), kAnyPriority);
}

bool Scheduler::goes_first(const Sequence& waiting, const Sequence& running) const {
  // Once admitted, it has the highest priority that waits.
  const std::int32_t priority = waiting_.highest_priority();
  if (priority != running.priority) return priority > running.priority;
  return waiting.priority < priority || waiting_.goes_first(waiting, running);
}

// Lets a sequence in, or ends it where it outgrew the cache. False: there is no room for it, and
// nobody may overtake it.
bool Scheduler::admit(Sequence& sequence, Position limit) {
  if (Status fits = blocks_.fits_alone(sequence.known()); !fits.ok()) {
    end(sequence, std::move(fits));
    return true;
  }
  if (running_.size() >= static_cast<std::size_t>(config_.max_running)) return false;
  const Position cached = cached_prefix(sequence);
  while (!has_room(sequence, cached, kAnyPriority)) {
    if (!drop_checkpoint()) return false;
  }
  const Position rows = rows_in_budget(sequence, limit);
  const Position least = config_.whole_sequences ? sequence.firm() : sequence.held ? 0 : 1;
  if (std::min(rows, blocks_.rows_that_fit(sequence.blocks, 0, rows)) < least) return false;
  if (!sequence.started && blocks_.has_prefixes()) {
    know_names(sequence);  // also of what cannot come from the cache
    sequence.first_difference = blocks_.first_difference(sequence.prefix(sequence.names.size()));
  }
  const std::int32_t priority = waiting_.highest_priority();
  waiting_.remove(sequence);
  sequence.priority = priority;
  run(sequence);
  ++admissions_;
  start_at(sequence, cached);
  plan_stretch(sequence, limit);
  return true;
}

// Whether the free blocks hold all of the sequence, besides what running ones will still take for
// the tokens they know: admitting on less would preempt it soon. Those below a priority, and one
// more, count as preempted, and leave what nobody else holds.
bool Scheduler::has_room(const Sequence& sequence, Position cached, std::int32_t above,
                         const Sequence* preempted) const {
  const auto prefix = sequence.prefix(sequence.names.size());
  const auto goes = [&](const Sequence* other) {
    return other->priority < above || other == preempted;
  };
  std::vector<const BlockTables*> given_up;
  for (const Sequence* other : running_)
    if (goes(other)) other->add_tables(given_up);
  for (std::size_t g = 0; g < config_.groups.size(); ++g) {
    const BlockReferences references = BlockManager::references_in(g, given_up);
    std::int64_t room = blocks_.pool(g).free_blocks() + blocks_.held_by_these_alone(g, references);
    for (const Sequence* other : running_) {
      if (goes(other)) continue;
      room -= std::max<std::int64_t>(
          0, blocks_.peak_blocks(g, other->known()) - other->blocks[g].live());
    }
    std::int64_t needed = blocks_.peak_blocks(g, sequence.known());
    // Where the last cached block is to be written to, its copy counts as needed, or it itself.
    if (cached > 0) needed -= blocks_.held_blocks(g, prefix, cached, references);
    if (room < needed) return false;
  }
  return true;
}

// --- Rows ---

// Rows of the next slice as the step's budgets and its drafts allow, blocks aside.
Position Scheduler::rows_in_budget(const Sequence& sequence, Position limit) const {
  // Drafts need a copy of the states to go back to.
  const bool takes_drafts = !blocks_.has_states() || blocks_.can_copy_states();
  const Position known = sequence.held  ? sequence.firm() - 1
                         : takes_drafts ? sequence.known()
                                        : sequence.firm();
  const Position chunk = config_.whole_sequences ? config_.max_rows : max_chunk_;
  limit = std::min({known - sequence.computed, config_.max_rows - plan_.rows, chunk, limit,
                    rows_before_saved_states(sequence)});
  std::int32_t logit_rows = config_.max_logit_rows - plan_.logit_rows;
  for (Position row = 0; row < limit; ++row) {
    if (sequence.wants_logits(sequence.computed + row) && logit_rows-- == 0) return row;
  }
  return limit;
}

void Scheduler::plan_stretch(Sequence& sequence, Position limit) {
  const std::int32_t before = plan_.rows, priority = sequence.priority;
  const std::uint64_t client = sequence.client;
  plan_running(rank_of(sequence), limit);
  plan_.stretch_rows += plan_.rows - before;
  waiting_.charge(priority, client, plan_.rows - before);
}

void Scheduler::plan_running(std::size_t rank, Position limit) {
  Sequence& sequence = *running_[rank];
  sequence.considered = step_;
  start_at(sequence, cached_prefix(sequence));
  if (is_being_computed(sequence)) return;
  const Position wanted = rows_in_budget(sequence, limit);
  if (wanted == 0) return;
  Position rows = blocks_.rows_that_fit(sequence.blocks, sequence.computed, wanted);
  while (rows == 0 && (drop_checkpoint() || preempt_below(rank))) {
    rows = blocks_.rows_that_fit(sequence.blocks, sequence.computed, wanted);
  }
  if (rows > 0) return take_rows(sequence, rows);
  // With others ahead it keeps its blocks and waits for theirs; alone it would wait for ever.
  if (running_.size() > 1) return;
  end(sequence, blocks_.fits_alone(sequence.computed + 1));
}

// Gives up the oldest checkpoint of the lowest-ranked sequence that has one. Copies of the step
// that read its blocks come before any row that is written there.
bool Scheduler::drop_checkpoint() {
  for (std::size_t rank = running_.size(); rank-- > 0;) {
    auto& saved = running_[rank]->checkpoints;
    if (saved.empty()) continue;
    blocks_.release(saved.front().blocks);
    saved.erase(saved.begin());
    return true;
  }
  return false;
}

// Preempts the lowest-ranked sequence behind `rank` that the step has not planned.
bool Scheduler::preempt_below(std::size_t rank) {
  for (std::size_t victim = running_.size(); --victim > rank;) {
    if (running_[victim]->planned > 0) continue;
    preempt(victim);
    return true;
  }
  return false;
}

void Scheduler::take_rows(Sequence& sequence, Position rows) {
  if (!sequence.started) {
    sequence.started = true;
    prefix_queries_ += blocks_.has_prefixes() ? sequence.known() : 0;
    prefix_hits_ += sequence.cached;
  }
  // Drafts are checked in the step that computes the last firm token, or not at all.
  const Position end = sequence.computed + rows;
  sequence.drop_drafts(std::min(sequence.drafts, sequence.known() - end));
  if (end > sequence.firm() && blocks_.has_states()) {
    sequence.states_before_drafts = blocks_.share_states(sequence.blocks);
  }
  if (blocks_.has_prefixes()) {
    const auto after = static_cast<std::size_t>(end / blocks_.prefix_tokens());
    for (std::size_t i = sequence.named; i < std::min(after, sequence.names.size()); ++i)
      being_computed_.insert(sequence.names[i]);
  }
  blocks_.reserve(sequence.blocks, sequence.computed, rows, plan_.copies);
  sequence.planned = rows;
  SequenceSlice slice;
  slice.sequence = sequence.id;
  slice.first = sequence.computed;
  slice.tokens =
      std::span(sequence.tokens)
          .subspan(static_cast<std::size_t>(sequence.computed), static_cast<std::size_t>(rows));
  for (Position position = sequence.computed; position < end; ++position) {
    slice.wants_logits.push_back(sequence.wants_logits(position) ? 1 : 0);
    plan_.logit_rows += slice.wants_logits.back();
  }
  for (const BlockTable& table : sequence.blocks) slice.block_tables.emplace_back(table.blocks);
  plan_.slices.push_back(std::move(slice));
  plan_.rows += rows;
}

// --- The prefix cache ---

void Scheduler::know_names(Sequence& sequence) {
  const auto tokens = static_cast<std::size_t>(blocks_.prefix_tokens());
  const auto blocks = static_cast<std::size_t>(sequence.firm()) / tokens;
  for (std::size_t i = sequence.names.size(); i < blocks; ++i) {
    sequence.names.push_back(block_name(i == 0 ? sequence.root : sequence.names[i - 1],
                                        std::span(sequence.tokens).subspan(i * tokens, tokens)));
  }
}

// From where on rows must be computed.
Position Scheduler::cached_prefix(Sequence& sequence) {
  const Position limit = blocks_.has_prefixes() ? sequence.cacheable() : 0;
  if (limit <= sequence.computed) return sequence.computed;
  know_names(sequence);
  const auto prefix = sequence.prefix(sequence.names.size());
  const auto next = static_cast<std::size_t>(sequence.computed / blocks_.prefix_tokens());
  if (sequence.computed > 0 && !blocks_.has_block(prefix, next)) return sequence.computed;
  return std::max(sequence.computed, blocks_.cached_prefix(prefix, limit));
}

void Scheduler::start_at(Sequence& sequence, Position position) {
  if (position <= sequence.computed) return;
  BlockTables tables = blocks_.share_prefix(sequence.prefix(sequence.names.size()), position);
  blocks_.release(sequence.blocks);
  sequence.blocks = std::move(tables);
  sequence.computed = position;
  sequence.named = static_cast<std::size_t>(position / blocks_.prefix_tokens());
  if (!sequence.started) sequence.cached = position;
}

// Whether the step has rows already that will soon be there for this sequence too.
bool Scheduler::is_being_computed(const Sequence& sequence) const {
  if (being_computed_.empty() || blocks_.has_states()) return false;
  if (sequence.cacheable() <= sequence.computed) return false;
  const auto next = static_cast<std::size_t>(sequence.computed / blocks_.prefix_tokens());
  return next < sequence.names.size() && being_computed_.contains(sequence.names[next]);
}

// States are saved at the last end of a block before the last known token, and every so many tokens
// before it, so a slice must end there.
Position Scheduler::rows_before_saved_states(const Sequence& sequence) const {
  if (!blocks_.has_prefixes() || !blocks_.has_states()) return sequence.pending();
  const Position tokens = blocks_.prefix_tokens();
  Position end = (sequence.firm() - 1) / tokens * tokens;
  if (const Position every = config_.state_tokens; every > 0)
    end = std::min(end, (sequence.computed / every + 1) * every);
  return end > sequence.computed ? end - sequence.computed : sequence.pending();
}

// Gives names to what was computed, and saves the states: within a prompt, at its end, and the last
// ones behind it.
void Scheduler::keep_prefix(Sequence& sequence) {
  if (!blocks_.has_prefixes()) return;
  know_names(sequence);
  const Position tokens = blocks_.prefix_tokens();
  const auto full = static_cast<std::size_t>(sequence.computed / tokens);
  const auto prefix = sequence.prefix(full);
  if (full > sequence.named) blocks_.name_blocks(sequence.blocks, prefix, sequence.named, full);
  sequence.named = full;
  if (!blocks_.has_states() || full == 0 || sequence.computed % tokens != 0) return;
  if (sequence.firm() - sequence.computed > tokens) {
    if (config_.state_tokens > 0 && sequence.computed % config_.state_tokens == 0)
      blocks_.save_states(sequence.blocks, prefix, true);
    return;
  }
  if (sequence.first_states == 0) {
    sequence.first_states = sequence.computed;
  } else if (sequence.computed > std::max(sequence.first_states, sequence.last_states)) {
    if (sequence.last_states > 0)
      blocks_.forget_states(
          sequence.prefix(static_cast<std::size_t>(sequence.last_states / tokens)));
    sequence.last_states = sequence.computed;
  }
  blocks_.save_states(sequence.blocks, prefix, false);
}

}  // namespace strata
