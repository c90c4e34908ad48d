#include "schedule/scheduler.h"

#include <algorithm>
#include <limits>
#include <unordered_set>
#include <utility>

namespace strata {

namespace {

constexpr std::int64_t kMaxTokens = std::numeric_limits<Position>::max();

Status check(const SchedulerConfig& config) {
  if (config.max_rows < 1 || config.max_logit_rows < 1 || config.max_running < 1) {
    return invalid_argument(
        "a step needs at least 1 row, logit row and running sequence, not {}, {} and {}",
        config.max_rows, config.max_logit_rows, config.max_running);
  }
  for (const CacheGroup& group : config.groups) {
    if (group.block_tokens < 1 || group.blocks < 1 || group.window < 0) {
      return invalid_argument("a cache group of {} blocks of {} tokens with window {} is invalid",
                              group.blocks, group.block_tokens, group.window);
    }
    if (config.prefix_tokens > 0 && !group.is_state() &&
        group.block_tokens != config.prefix_tokens) {
      return invalid_argument("a prefix cache of {} tokens a block cannot name blocks of {}",
                              config.prefix_tokens, group.block_tokens);
    }
  }
  if (config.prefix_tokens < 0 || (config.prefix_tokens > 0 && config.whole_sequences))
    return invalid_argument("whole sequences have no prefix cache");
  if (config.state_tokens < 0 ||
      (config.state_tokens > 0 &&
       (config.prefix_tokens == 0 || config.state_tokens % config.prefix_tokens != 0)))
    return invalid_argument("states cannot be saved every {} tokens in blocks of {}",
                            config.state_tokens, config.prefix_tokens);
  return {};
}

}  // namespace

Result<Scheduler> Scheduler::create(SchedulerConfig config) {
  STRATA_TRY(check(config));
  return Scheduler(std::move(config));
}

Scheduler::Scheduler(SchedulerConfig config)
    : config_(std::move(config)),
      blocks_(config_.groups, config_.prefix_tokens),
      max_chunk_(config_.max_rows),
      waiting_(config_.max_running),
      stretch_rows_(config_.max_rows) {}

const Sequence* Scheduler::find(SequenceId id) const {
  const auto found = sequences_.find(id);
  return found == sequences_.end() ? nullptr : found->second.get();
}

Status Scheduler::check_idle() const {
  if (plan_.empty()) return {};
  return invalid_argument("a step is under way; commit it first");
}

// --- Sequences come and go ---

Status Scheduler::check_new(const NewSequence& sequence) const {
  if (!sequence.id.valid()) return invalid_argument("sequence {} is no id", sequence.id.value);
  if (sequences_.contains(sequence.id)) {
    return invalid_argument("sequence {} exists already", sequence.id.value);
  }
  if (sequence.tokens.empty()) return invalid_argument("a sequence needs at least one token");
  if (static_cast<std::int64_t>(sequence.tokens.size()) > kMaxTokens) {
    return resource_exhausted("{} tokens exceed the limit of {}", sequence.tokens.size(),
                              kMaxTokens);
  }
  Position previous = -1;
  for (const Position position : sequence.logit_positions) {
    if (position <= previous || position >= static_cast<Position>(sequence.tokens.size())) {
      return invalid_argument(
          "logit position {} follows {}: they must ascend and lie within the {} tokens", position,
          previous, sequence.tokens.size());
    }
    previous = position;
  }
  if (config_.whole_sequences) STRATA_TRY(check_whole(sequence));
  return blocks_.fits_alone(static_cast<Position>(sequence.tokens.size()));
}

Status Scheduler::check_whole(const NewSequence& sequence) const {
  const std::size_t rows = sequence.tokens.size();
  if (rows > static_cast<std::size_t>(config_.max_rows))
    return resource_exhausted("{} tokens must be computed in one step, which holds {}", rows,
                              config_.max_rows);
  const auto& wanted = sequence.logit_positions;
  const bool last_too =
      sequence.final_logits && (wanted.empty() || wanted.back() != static_cast<Position>(rows) - 1);
  const std::size_t logit_rows = wanted.size() + (last_too ? 1 : 0);
  if (logit_rows > static_cast<std::size_t>(config_.max_logit_rows))
    return resource_exhausted("{} rows of output are wanted of one step, which delivers {}",
                              logit_rows, config_.max_logit_rows);
  return {};
}

Status Scheduler::add(NewSequence sequence) {
  STRATA_TRY(check_idle());
  STRATA_TRY(check_new(sequence));
  auto added = std::make_unique<Sequence>();
  added->id = sequence.id;
  added->tokens = std::move(sequence.tokens);
  added->logit_positions = std::move(sequence.logit_positions);
  added->final_logits = sequence.final_logits;
  added->priority = sequence.priority;
  added->client = sequence.client;
  added->blocks = blocks_.empty_tables();
  if (blocks_.has_prefixes()) added->root = root_name(sequence.cache_salt);
  wait(*added);
  sequences_.emplace(added->id, std::move(added));
  return {};
}

Status Scheduler::fork(SequenceId parent, SequenceId child, std::optional<TokenId> last) {
  STRATA_TRY(check_idle());
  const Sequence* origin = find(parent);
  if (origin == nullptr) return not_found("there is no sequence {}", parent.value);
  if (!child.valid() || sequences_.contains(child)) {
    return invalid_argument("sequence {} is no new id", child.value);
  }
  auto forked = std::make_unique<Sequence>(*origin);
  forked->id = child;
  forked->held = false;
  forked->drop_drafts(forked->drafts);
  if (last) {
    forked->tokens.back() = *last;
    forked->forget_names(forked->known() - 1, blocks_.prefix_tokens());
  }
  const bool shares = origin->computed > 0 &&
                      running_.size() < static_cast<std::size_t>(config_.max_running) &&
                      !waiting_.must_wait(*origin);
  if (shares) {
    forked->blocks = blocks_.share(origin->blocks);
    for (Checkpoint& saved : forked->checkpoints) saved.blocks = blocks_.share(saved.blocks);
    run(*forked);
  } else {
    forked->blocks = blocks_.empty_tables();
    forked->checkpoints.clear();
    forked->computed = 0;
    forked->named = 0;
    wait(*forked);
  }
  sequences_.emplace(child, std::move(forked));
  return {};
}

Status Scheduler::cancel(SequenceId id) {
  STRATA_TRY(check_idle());
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return not_found("there is no sequence {}", id.value);
  erase(*found->second);
  return {};
}

std::vector<SequenceId> Scheduler::runnable() const {
  std::vector<SequenceId> ids;
  for (const Sequence* sequence : running_) {
    if (sequence->has_single_row()) ids.push_back(sequence->id);
  }
  return ids;
}

Status Scheduler::extend(SequenceId id, std::span<const TokenId> drafts) {
  STRATA_TRY(check_idle());
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return not_found("there is no sequence {}", id.value);
  Sequence& sequence = *found->second;
  if (sequence.firm() - sequence.computed != 1) {
    return invalid_argument("sequence {} has {} rows to compute before drafts", id.value,
                            sequence.firm() - sequence.computed);
  }
  if (static_cast<std::int64_t>(drafts.size()) > kMaxTokens - sequence.firm()) {
    return resource_exhausted("{} drafts are too many", drafts.size());
  }
  sequence.drop_drafts(sequence.drafts);
  sequence.tokens.insert(sequence.tokens.end(), drafts.begin(), drafts.end());
  sequence.drafts = static_cast<Position>(drafts.size());
  return {};
}

Status Scheduler::checkpoint(SequenceId id) {
  STRATA_TRY(check_idle());
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return not_found("there is no sequence {}", id.value);
  Sequence& sequence = *found->second;
  if (sequence.computed == 0) {
    return invalid_argument("sequence {} has no computed row to save", id.value);
  }
  auto& saved = sequence.checkpoints;
  if (saved.empty() || saved.back().position < sequence.computed) {
    saved.push_back({sequence.computed, blocks_.share(sequence.blocks)});
  }
  return {};
}

Status Scheduler::rewind(SequenceId id, Position keep, std::span<const TokenId> then) {
  STRATA_TRY(check_idle());
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return not_found("there is no sequence {}", id.value);
  Sequence& sequence = *found->second;
  if (keep < 0 || keep > sequence.firm() || then.empty()) {
    return invalid_argument("sequence {} cannot go back to {} of its {} tokens and on with {}",
                            id.value, keep, sequence.firm(), then.size());
  }
  if (static_cast<std::int64_t>(then.size()) > kMaxTokens - keep) {
    return resource_exhausted("sequence {} is too long", id.value);
  }
  sequence.drop_drafts(sequence.drafts);
  if (sequence.computed > keep) go_back(sequence, keep);
  sequence.delivered = std::min(sequence.delivered, keep);
  std::erase_if(sequence.logit_positions, [&](Position position) { return position >= keep; });
  sequence.tokens.resize(static_cast<std::size_t>(keep));
  sequence.tokens.insert(sequence.tokens.end(), then.begin(), then.end());
  sequence.forget_names(keep, blocks_.prefix_tokens());
  sequence.first_states = sequence.last_states = 0;
  return {};
}

// Leaves at most the first `position` rows computed.
void Scheduler::go_back(Sequence& sequence, Position position) {
  auto& saved = sequence.checkpoints;
  for (; !saved.empty() && saved.back().position > position; saved.pop_back()) {
    blocks_.release(saved.back().blocks);
  }
  if (blocks_.can_trim(sequence.blocks, position)) {
    sequence.computed = position;
  } else {
    blocks_.release(sequence.blocks);
    sequence.computed = saved.empty() ? 0 : saved.back().position;
    if (!saved.empty()) sequence.blocks = blocks_.share(saved.back().blocks);
  }
  blocks_.trim(sequence.blocks, sequence.computed);
  if (blocks_.has_prefixes())
    sequence.named = std::min(
        sequence.named, static_cast<std::size_t>(sequence.computed / blocks_.prefix_tokens()));
}

Status Scheduler::force_preempt(SequenceId id) {
  STRATA_TRY(check_idle());
  const Sequence* sequence = find(id);
  if (sequence == nullptr) return not_found("there is no sequence {}", id.value);
  const std::size_t rank = rank_of(*sequence);
  if (rank == running_.size()) return invalid_argument("sequence {} is not running", id.value);
  preempt(rank);
  return {};
}

Status Scheduler::hold(SequenceId id, bool held) {
  STRATA_TRY(check_idle());
  const auto found = sequences_.find(id);
  if (found == sequences_.end()) return not_found("there is no sequence {}", id.value);
  found->second->held = held;
  return {};
}

bool Scheduler::runs(SequenceId id) const {
  const Sequence* sequence = find(id);
  return sequence != nullptr && rank_of(*sequence) < running_.size();
}

std::vector<Ended> Scheduler::take_ended() { return std::exchange(ended_, {}); }

std::size_t Scheduler::rank_of(const Sequence& sequence) const {
  return static_cast<std::size_t>(std::find(running_.begin(), running_.end(), &sequence) -
                                  running_.begin());
}

void Scheduler::wait(Sequence& sequence) {
  sequence.waits_since = step_;
  waiting_.push_back(sequence);
}

void Scheduler::run(Sequence& sequence) {
  const auto lower = std::find_if(running_.begin(), running_.end(), [&](const Sequence* other) {
    return other->priority < sequence.priority;
  });
  running_.insert(lower, &sequence);
  waiting_.start(sequence);
}

void Scheduler::preempt(std::size_t rank) {
  Sequence& sequence = *running_[rank];
  running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(rank));
  waiting_.stop(sequence);
  release(sequence);
  sequence.drop_drafts(sequence.drafts);
  sequence.computed = 0;
  sequence.named = 0;
  sequence.planned = 0;
  sequence.waits_since = step_;
  waiting_.push_front(sequence);
  ++preemptions_;
}

void Scheduler::end(Sequence& sequence, Status status) {
  ended_.push_back({sequence.id, std::move(status)});
  erase(sequence);
}

void Scheduler::erase(Sequence& sequence) {
  if (std::erase(running_, &sequence) > 0)
    waiting_.stop(sequence);
  else
    waiting_.remove(sequence);
  release(sequence);
  const SequenceId id = sequence.id;
  sequences_.erase(id);
}

void Scheduler::release(Sequence& sequence) {
  blocks_.release(sequence.blocks);
  for (Checkpoint& saved : sequence.checkpoints) blocks_.release(saved.blocks);
  sequence.checkpoints.clear();
  if (sequence.states_before_drafts) blocks_.release(*sequence.states_before_drafts);
  sequence.states_before_drafts.reset();
}

// --- Committing ---

Status Scheduler::check_confirmed(const Confirmed& confirmed) const {
  const Sequence* sequence = find(confirmed.sequence);
  const std::int64_t id = confirmed.sequence.value;
  if (sequence == nullptr || sequence->planned == 0) {
    return invalid_argument("sequence {} is not part of the step", id);
  }
  if (confirmed.finished) return {};
  if (config_.whole_sequences)
    return invalid_argument("sequence {} was computed whole and must be finished", id);
  if (confirmed.keep < 1 || confirmed.keep > sequence->planned) {
    return invalid_argument("sequence {}: {} of {} rows cannot be kept", id, confirmed.keep,
                            sequence->planned);
  }
  const std::int64_t computed = std::int64_t{sequence->computed} + confirmed.keep;
  const bool cut = confirmed.keep < sequence->planned || !confirmed.appended.empty();
  if (cut && computed < sequence->firm()) {
    return invalid_argument("sequence {}: {} tokens that are no drafts would be lost", id,
                            sequence->firm() - computed);
  }
  const auto appended = static_cast<std::int64_t>(confirmed.appended.size());
  const std::int64_t known = cut ? computed + appended : sequence->known();
  if (known == computed) {
    return invalid_argument("sequence {} is neither finished nor has a token to compute", id);
  }
  if (known > kMaxTokens) return resource_exhausted("sequence {} is too long", id);
  return {};
}

void Scheduler::apply(const Confirmed& confirmed) {
  Sequence& sequence = *sequences_.at(confirmed.sequence);
  const Position planned = sequence.planned;
  const Position keep = std::clamp(confirmed.keep, 0, planned);
  const bool cut = keep < planned || !confirmed.appended.empty();
  const Position kept = sequence.computed + keep;
  sequence.delivered = std::max(sequence.delivered, kept);
  if (keep < planned && sequence.states_before_drafts) {
    // The states have seen rows that do not stand: the kept ones are computed again.
    blocks_.restore_states(sequence.blocks, *sequence.states_before_drafts);
  } else {
    sequence.computed = kept;
    if (sequence.states_before_drafts) blocks_.release(*sequence.states_before_drafts);
  }
  sequence.states_before_drafts.reset();
  sequence.planned = 0;
  if (cut && kept >= sequence.firm()) {
    sequence.tokens.resize(static_cast<std::size_t>(kept));
    sequence.tokens.insert(sequence.tokens.end(), confirmed.appended.begin(),
                           confirmed.appended.end());
  }
  sequence.drafts = 0;
  // The states of a finished sequence may have seen rows that it did not keep.
  if (!confirmed.finished || !blocks_.has_states() || keep == planned) keep_prefix(sequence);
  if (confirmed.finished) return erase(sequence);
  blocks_.trim(sequence.blocks, sequence.computed);
}

Status Scheduler::commit(std::span<const Confirmed> confirmed) {
  std::unordered_set<SequenceId> seen;
  for (const Confirmed& one : confirmed) {
    if (!seen.insert(one.sequence).second) {
      return invalid_argument("sequence {} is confirmed twice", one.sequence.value);
    }
    STRATA_TRY(check_confirmed(one));
  }
  for (const Confirmed& one : confirmed) apply(one);
  for (std::size_t rank = running_.size(); rank-- > 0;) {
    if (running_[rank]->planned > 0) preempt(rank);
  }
  plan_ = StepPlan();
  return {};
}

// --- Watching ---

std::int32_t Scheduler::single_rows() const {
  return static_cast<std::int32_t>(std::ranges::count_if(
      running_, [](const Sequence* sequence) { return sequence->has_single_row(); }));
}

SchedulerStats Scheduler::stats() const {
  SchedulerStats stats;
  stats.running = static_cast<std::int32_t>(running_.size());
  stats.waiting = static_cast<std::int32_t>(sequences_.size() - running_.size());
  stats.preemptions = preemptions_;
  stats.takeovers = takeovers_;
  stats.prefix_queries = prefix_queries_;
  stats.prefix_hits = prefix_hits_;
  stats.prefix_evictions = blocks_.evictions();
  for (std::size_t g = 0; g < config_.groups.size(); ++g) {
    const BlockPool& pool = blocks_.pool(g);
    stats.free_blocks.push_back(pool.free_blocks());
    stats.used_blocks.push_back(pool.blocks() - pool.free_blocks());
    stats.cached_blocks.push_back(pool.idle_blocks());
  }
  return stats;
}

Status Scheduler::check_cache(const Sequence& sequence) const {
  Status status =
      blocks_.check_cover(sequence.blocks, sequence.computed, sequence.computed + sequence.planned);
  Position previous = 0;
  for (const Checkpoint& saved : sequence.checkpoints) {
    if (saved.position <= previous || saved.position > sequence.computed) {
      status = internal_error("a checkpoint at {} follows {}", saved.position, previous);
    }
    previous = saved.position;
    if (status.ok()) status = blocks_.check_cover(saved.blocks, saved.position, saved.position);
  }
  if (sequence.states_before_drafts && sequence.planned == 0) {
    status = internal_error("states are kept for drafts outside a step");
  }
  if (status.ok()) return status;
  return status.with_context(fmt::format("sequence {}", sequence.id.value));
}

Status Scheduler::check_invariants() const {
  for (const Sequence* sequence : running_) {
    const auto slots = std::ranges::count_if(running_, [&](const Sequence* other) {
      return other->priority == sequence->priority && other->client == sequence->client;
    });
    if (slots != waiting_.slots_of(sequence->priority, sequence->client))
      return internal_error("client {} holds {} slots, not {}", sequence->client, slots,
                            waiting_.slots_of(sequence->priority, sequence->client));
  }
  std::unordered_set<const Sequence*> placed(running_.begin(), running_.end());
  std::size_t places = running_.size();
  for (const Sequence* sequence : waiting_.all()) {
    ++places;
    placed.insert(sequence);
    if (sequence->computed != 0 || sequence->planned != 0)
      return internal_error("sequence {} waits in a wrong state", sequence->id.value);
  }
  if (places != sequences_.size() || placed.size() != sequences_.size()) {
    return internal_error("{} sequences have {} places", sequences_.size(), places);
  }
  std::vector<const BlockTables*> tables;
  for (const auto& [id, sequence] : sequences_) {
    if (sequence->pending() < 1 || sequence->planned > sequence->pending()) {
      return internal_error("sequence {}: {} rows pending, {} planned", id.value,
                            sequence->pending(), sequence->planned);
    }
    STRATA_TRY(check_cache(*sequence));
    sequence->add_tables(tables);
  }
  if (!std::is_sorted(running_.begin(), running_.end(), [](const Sequence* a, const Sequence* b) {
        return a->priority > b->priority;
      })) {
    return internal_error("running sequences are not in the order of their rank");
  }
  return blocks_.check_references(tables);
}

}  // namespace strata
