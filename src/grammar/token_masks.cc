#include "grammar/token_masks.h"

#include <algorithm>

#include "grammar/matcher.h"

namespace strata {
namespace {

// What a mask may cost thread by thread, in steps per node of the tree, before all tokens are tried
// instead. What follows a thread's state alone counts less, as it is mostly known.
constexpr std::size_t kMostSteps = 1;
constexpr std::size_t kLocalDiscount = 8;
constexpr Bytes kMostLocalBytes = 8 * kMiB;
constexpr Bytes kMostCachedBytes = 4 * kMiB;
constexpr Bytes kEntryBytes = 256;  // of the maps and lists, and the heap's own
// Preparation: states that take this many bytes are followed by long walks.
constexpr unsigned kWideBytes = 96;
constexpr std::size_t kMostPrepared = 16;

void set_bit(std::vector<std::uint64_t>& mask, TokenId token) {
  mask[static_cast<std::size_t>(token) / 64] |= std::uint64_t{1} << (token % 64);
}

std::uint64_t hash_of(const Configuration& configuration) {
  std::uint64_t hash = configuration.frames.size();
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 32;
  };
  for (const StackFrame& frame : configuration.frames) {
    add(std::uint64_t{frame.node} << 32 | frame.parent);
    add(std::uint64_t{frame.fewest} << 32 | frame.most);
  }
  for (const Thread& thread : configuration.threads)
    add(std::uint64_t{thread.state} << 32 | thread.frame);
  return hash;
}

// The states that read bytes and can be reached; compiling leaves others behind.
std::vector<std::uint32_t> readers(const Automaton& automaton) {
  std::vector<bool> seen(automaton.states.size());
  std::vector<std::uint32_t> out, next = {automaton.start};
  const auto add = [&](std::uint32_t state) {
    if (state == kNoState || seen[state]) return;
    seen[state] = true;
    next.push_back(state);
  };
  while (!next.empty()) {
    const std::uint32_t id = next.back();
    const Automaton::State& state = automaton.states[id];
    next.pop_back();
    add(state.target);
    if (state.kind == Automaton::Kind::kBytes) {
      out.push_back(id);
      for (std::uint32_t i = 0; i < state.count; ++i) add(automaton.edges[state.first + i].target);
    } else if (state.kind == Automaton::Kind::kSplit) {
      for (std::uint32_t i = 0; i < state.count; ++i) add(automaton.targets[state.first + i]);
    } else if (state.kind == Automaton::Kind::kCall) {
      add(state.first);
    } else if (state.kind == Automaton::Kind::kRepeat) {
      const Automaton::Repetition& repetition = automaton.repetitions[state.first];
      add(automaton.bodies[repetition.body]);
      add(repetition.next);
    }
  }
  return out;
}

template <typename T>
Bytes bytes_of(const std::vector<T>& items) {
  return items.capacity() * sizeof(T);
}

Bytes bytes_of(const Automaton& automaton) {
  return bytes_of(automaton.states) + bytes_of(automaton.edges) + bytes_of(automaton.targets) +
         bytes_of(automaton.repetitions) + bytes_of(automaton.bodies);
}

unsigned bytes_taken(const Automaton& automaton, std::uint32_t state) {
  unsigned bytes = 0;
  for (std::uint32_t i = 0; i < automaton.states[state].count; ++i) {
    const Automaton::Edge& edge = automaton.edges[automaton.states[state].first + i];
    bytes += edge.last - edge.first + 1u;
  }
  return bytes;
}

}  // namespace

TokenMasks::TokenMasks(Grammar grammar, std::shared_ptr<const TokenTable> table,
                       std::shared_ptr<MaskRoom> room)
    : grammar_(std::move(grammar)),
      table_(std::move(table)),
      room_(std::move(room)),
      simulation_(*grammar_),
      local_simulation_(*grammar_),
      path_(table_->longest() + 1) {
  std::size_t prepared = 0;
  for (const std::uint32_t state : readers(*grammar_))
    if (bytes_taken(*grammar_, state) >= kWideBytes && local_bytes_ <= kMostLocalBytes &&
        prepared++ < kMostPrepared)
      local(state);
  start_ = compute(simplified(GrammarMatcher(grammar_).configuration()));
  settle();
}

TokenMasks::~TokenMasks() {
  if (room_) room_->used -= held_;
}

Bytes TokenMasks::Cached::bytes() const {
  return kEntryBytes + bytes_of(configuration.frames) + bytes_of(configuration.threads) +
         (mask ? bytes_of(*mask) : 0);
}

void TokenMasks::forget_locals() {
  locals_.clear();
  local_bytes_ = 0;
}

void TokenMasks::forget(std::list<Cached>::iterator cached) {
  cached_bytes_ -= cached->bytes();
  cached_.erase(hash_of(cached->configuration));
  cache_.erase(cached);
}

void TokenMasks::count() {
  const Bytes held = sizeof(*this) + kEntryBytes + bytes_of(*grammar_) + bytes_of(path_) +
                     simulation_->bytes() + local_simulation_->bytes() + local_bytes_ +
                     cached_bytes_ + (start_ ? bytes_of(*start_) : 0);
  const Bytes before = held_.exchange(held);
  if (room_) room_->used += held - before;
}

void TokenMasks::settle() {
  count();
  if (!room_ || !room_->is_full()) return;
  forget_locals();
  while (!cache_.empty()) forget(cache_.begin());
  simulation_.emplace(*grammar_);
  local_simulation_.emplace(*grammar_);
  count();
}

// Numbers of rounds that are equal as far as one token reaches become the same.
Configuration TokenMasks::simplified(Configuration configuration) const {
  const std::uint64_t reach = table_->longest() + 1;
  for (StackFrame& frame : configuration.frames) {
    if (!StackFrame::is_repetition(frame.node)) continue;
    const auto& repetition = grammar_->repetitions[frame.node & ~StackFrame::kRepetition];
    const auto simplify = [&](std::uint32_t& count) {
      const bool far = repetition.max == kUnbounded || count + reach < repetition.max;
      if (count >= repetition.min && far)
        count = repetition.min;
      else if (count + reach < repetition.min)
        count = 0;
    };
    simplify(frame.fewest);
    simplify(frame.most);
  }
  return configuration;
}

std::shared_ptr<const TokenMasks::Mask> TokenMasks::mask(const Configuration& configuration) {
  Configuration key = simplified(configuration);
  const std::uint64_t hash = hash_of(key);
  const std::lock_guard lock(mutex_);
  const auto known = cached_.find(hash);
  if (known != cached_.end() && known->second->configuration == key) {
    cache_.splice(cache_.begin(), cache_, known->second);
    return known->second->mask;
  }
  std::shared_ptr<const Mask> mask = compute(key);
  if (known != cached_.end()) forget(known->second);
  cache_.push_front({std::move(key), mask});
  cached_[hash] = cache_.begin();
  cached_bytes_ += cache_.front().bytes();
  while (cached_bytes_ > kMostCachedBytes) forget(std::prev(cache_.end()));
  settle();
  return mask;
}

std::shared_ptr<const TokenMasks::Mask> TokenMasks::compute(const Configuration& configuration) {
  auto mask = std::make_shared<Mask>(table_->mask_words());
  if (local_bytes_ > kMostLocalBytes) forget_locals();
  left_ = kMostSteps * table_->node_count();
  added_.clear();
  simulation_->clear();
  Simulation::Set now = simulation_->enter(configuration);
  for (std::size_t i = 0; i < simulation_->threads(now).size() && left_ > 0; ++i)
    add_thread(simulation_->threads(now)[i], *mask);
  if (left_ == 0 || simulation_->overflowed()) {
    simulation_->clear();
    path_[0] = now = simulation_->enter(configuration);
    left_ = table_->node_count() + 1;
    add_nodes(0, table_->node_count(), *mask);
  }
  if (simulation_->overflowed()) return nullptr;
  if (configuration.done())
    for (const TokenId end : table_->ends()) set_bit(*mask, end);
  return mask;
}

void TokenMasks::add_thread(const Thread& thread, Mask& mask) {
  if (thread.state == Thread::kDone) return;
  const Local& known = local(thread.state);
  const auto [added, is_new] = added_.try_emplace(thread.state, 0);
  spend(known.failed ? left_ : known.exits.size() + (is_new ? known.cost / kLocalDiscount : 0));
  if (left_ == 0) return;
  std::uint32_t least = 0, most = kUnbounded;
  const bool counted = grammar_->states[thread.state].body != kNoState;
  if (counted) {
    const StackFrame frame = simulation_->frame(thread.frame);
    const auto& repetition = grammar_->repetitions[frame.node & ~StackFrame::kRepetition];
    least = repetition.min - std::min(repetition.min, frame.most);
    if (repetition.max != kUnbounded) most = repetition.max - frame.fewest;
  }
  // A thread that is still inside has begun another round.
  const std::uint32_t inside = most == kUnbounded ? most : most - 1;
  if (is_new || inside > added->second) add_tokens(known, added->second = inside, mask);
  if (known.exits.empty()) return;
  const Simulation::Set outside = counted ? simulation_->after_repetition(thread.frame)
                                          : simulation_->after_return(thread.frame);
  if (outside == Simulation::kDead) return;
  for (const Local::Exit& exit : known.exits)
    if (!counted || (exit.most >= least && exit.fewest <= most))
      add_below(exit.node, outside, mask);
}

void TokenMasks::add_tokens(const Local& local, std::uint32_t most_rounds, Mask& mask) {
  const auto all = static_cast<std::uint32_t>(local.tokens.size());
  const std::uint32_t fit = most_rounds < local.ends.size() ? local.ends[most_rounds] : all;
  if (local.all.empty() || fit < all / 2) {
    spend(fit);
    for (std::uint32_t i = 0; i < fit; ++i) set_bit(mask, local.tokens[i]);
    return;
  }
  if (fit == all) {
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] |= local.all[i];
    return;
  }
  spend(all - fit);
  Mask fitting = local.all;
  for (std::uint32_t i = fit; i < all; ++i) {
    const TokenId token = local.tokens[i];
    fitting[static_cast<std::size_t>(token) / 64] &= ~(std::uint64_t{1} << (token % 64));
  }
  for (std::size_t i = 0; i < mask.size(); ++i) mask[i] |= fitting[i];
}

void TokenMasks::add_below(std::uint32_t node, Simulation::Set set, Mask& mask) {
  for (const TokenId token : table_->tokens_at(node)) set_bit(mask, token);
  path_[table_->node(node).depth] = set;
  add_nodes(node + 1, table_->node(node).end, mask);
}

void TokenMasks::add_nodes(std::uint32_t first, std::uint32_t end, Mask& mask) {
  table_->walk(
      first, end, path_,
      [&](Simulation::Set from, std::uint8_t byte) { return simulation_->step(from, byte); },
      [&](std::uint32_t at, Simulation::Set reached) {
        if (reached == Simulation::kDead || left_ == 0) return false;
        --left_;
        for (const TokenId token : table_->tokens_at(at)) set_bit(mask, token);
        return true;
      });
}

const TokenMasks::Local& TokenMasks::local(std::uint32_t state) {
  const auto known = locals_.find(state);
  if (known != locals_.end()) return *known->second;
  auto made = std::make_unique<const Local>(walk_local(state));
  local_bytes_ += sizeof(Local) + kEntryBytes + bytes_of(made->tokens) + bytes_of(made->ends) +
                  bytes_of(made->all) + bytes_of(made->exits);
  return *(locals_[state] = std::move(made));
}

TokenMasks::Local TokenMasks::walk_local(std::uint32_t state) {
  Local out;
  std::vector<std::pair<std::uint32_t, TokenId>> inside;  // with the rounds ended
  const bool counted = grammar_->states[state].body != kNoState;
  Simulation& simulation = *local_simulation_;
  simulation.clear();
  path_[0] = simulation.start_at(state);
  const auto bottom_of = [&](const Thread& thread) {
    StackFrame frame = simulation.frame(thread.frame);
    while (frame.parent != StackFrame::kNone) frame = simulation.frame(frame.parent);
    return frame;
  };
  const auto next = [&](Simulation::Set from, std::uint8_t byte) {
    return simulation.step(from, byte);
  };
  const auto take = [&](std::uint32_t at, Simulation::Set reached) {
    ++out.cost;
    if (reached == Simulation::kDead) return false;
    std::uint32_t fewest = kUnbounded;
    for (const Thread& thread : simulation.threads(reached)) {
      const StackFrame bottom = counted ? bottom_of(thread) : StackFrame{};
      if (thread.state == Thread::kDone)
        out.exits.push_back({at, bottom.fewest, bottom.most});
      else
        fewest = std::min(fewest, bottom.fewest);
    }
    if (fewest != kUnbounded)
      for (const TokenId token : table_->tokens_at(at)) inside.emplace_back(fewest, token);
    return true;
  };
  table_->walk(0, table_->node_count(), path_, next, take);
  out.cost += simulation.visits();
  out.failed = simulation.overflowed();
  std::ranges::sort(inside);
  for (const auto& [rounds, token] : inside) {
    out.ends.resize(std::max<std::size_t>(out.ends.size(), rounds),
                    static_cast<std::uint32_t>(out.tokens.size()));
    out.tokens.push_back(token);
  }
  out.ends.push_back(static_cast<std::uint32_t>(out.tokens.size()));
  if (out.tokens.size() > table_->mask_words()) {
    out.all.assign(table_->mask_words(), 0);
    for (const TokenId token : out.tokens) set_bit(out.all, token);
  }
  return out;
}

}  // namespace strata
