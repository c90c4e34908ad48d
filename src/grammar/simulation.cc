#include "grammar/simulation.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace strata {
namespace {

constexpr std::size_t kMostDepth = 1024;       // of a stack; threads that go deeper end
constexpr std::size_t kMostThreads = 1 << 15;  // of a set
constexpr std::size_t kMostSets = 1 << 15;
constexpr std::size_t kKeptSets = 1 << 11;    // whose memory stays for the next use
constexpr std::size_t kMostVisits = 1 << 17;  // of all closures
constexpr int kMergedLevels = 8;              // of stacks, from the top
constexpr std::size_t kMostFrames = 1 << 20;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
  x ^= x >> 29;
  return x * 0x94d049bb133111ebu;
}

std::uint64_t hash_of(const Thread& thread) {
  return mixed(1, std::uint64_t{thread.state} << 32 | thread.frame);
}

}  // namespace

bool Configuration::done() const {
  return std::ranges::any_of(threads, [](const Thread& t) { return t.state == Thread::kDone; });
}

bool Configuration::ended() const { return threads.size() == 1 && done(); }

void Simulation::Index::clear() {
  used_ = 0;
  if (++age_ == 0) {
    slots_.assign(slots_.size(), {});
    age_ = 1;
  }
}

void Simulation::Index::grow() {
  std::vector<Slot> grown(slots_.size() * 2);
  for (const Slot& slot : slots_) {
    if (slot.age != age_) continue;
    std::size_t at = (slot.hash >> 7) & (grown.size() - 1);
    while (grown[at].age == age_) at = (at + 1) & (grown.size() - 1);
    grown[at] = slot;
  }
  slots_ = std::move(grown);
}

template <typename Same>
std::uint32_t Simulation::Index::find_or_add(std::uint64_t hash, std::uint32_t fresh, Same same) {
  if (2 * used_ >= slots_.size()) grow();
  std::size_t at = (hash >> 7) & (slots_.size() - 1);
  for (; slots_[at].age == age_; at = (at + 1) & (slots_.size() - 1))
    if (slots_[at].hash == hash && same(slots_[at].value)) return slots_[at].value;
  slots_[at] = {hash, fresh, age_};
  ++used_;
  return fresh;
}

Simulation::Simulation(const Automaton& automaton) : automaton_(automaton) { clear(); }

void Simulation::clear() {
  frames_.clear();
  depths_.clear();
  frame_index_.clear();
  threads_.clear();
  sets_.clear();
  following_.resize(std::min(following_.size(), kKeptSets));
  set_index_.clear();
  visited_.clear();
  visited_index_.clear();
  reached_.clear();
  visits_ = 0;
  overflowed_ = false;
  add_set({});
}

std::size_t Simulation::bytes() const {
  const auto held = [](const auto& items) { return items.capacity() * sizeof(items[0]); };
  return held(frames_) + held(depths_) + held(threads_) + held(sets_) + held(reached_) +
         held(visited_) + held(following_) + following_.size() * sizeof(*following_[0]) +
         frame_index_.bytes() + set_index_.bytes() + visited_index_.bytes();
}

std::uint32_t Simulation::push(const StackFrame& frame) {
  const auto fresh = static_cast<std::uint32_t>(frames_.size());
  const std::uint64_t hash =
      mixed(mixed(frame.node, std::uint64_t{frame.fewest} << 32 | frame.most), frame.parent);
  const std::uint32_t found = frame_index_.find_or_add(
      hash, fresh, [&](std::uint32_t other) { return frames_[other] == frame; });
  if (found == fresh) {
    frames_.push_back(frame);
    depths_.push_back(frame.parent == StackFrame::kNone ? 0 : depths_[frame.parent] + 1);
    overflowed_ |= frames_.size() > kMostFrames;
  }
  return found;
}

void Simulation::visit(std::uint32_t state, std::uint32_t frame) {
  const Thread thread{state, frame};
  const auto fresh = static_cast<std::uint32_t>(visited_.size());
  const std::uint32_t found = visited_index_.find_or_add(
      hash_of(thread), fresh, [&](std::uint32_t other) { return visited_[other] == thread; });
  if (found == fresh) visited_.push_back(thread);
}

void Simulation::finish(std::uint32_t frame) { visit(Thread::kDone, frame); }

void Simulation::return_to(std::uint32_t frame) {
  StackFrame top = frames_[frame];
  if (top.node == StackFrame::kBottom || top.node == StackFrame::kUnknown) return finish(frame);
  if (!StackFrame::is_repetition(top.node)) return visit(top.node, top.parent);
  const std::uint32_t index = top.node & ~StackFrame::kRepetition;
  ++top.fewest;
  ++top.most;
  if (top.parent == StackFrame::kNone) {
    const std::uint32_t next = push(top);
    finish(next);
    return visit(automaton_.bodies[index], next);
  }
  const Automaton::Repetition& repetition = automaton_.repetitions[index];
  if (repetition.max == kUnbounded) {
    top.fewest = std::min(top.fewest, repetition.min);
    top.most = std::min(top.most, repetition.min);
  }
  if (top.most >= repetition.min) visit(repetition.next, top.parent);
  if (top.fewest >= repetition.max) return;
  top.most = std::min(top.most, repetition.max - 1);
  visit(automaton_.bodies[repetition.body], push(top));
}

void Simulation::merge(std::vector<std::uint32_t>& frames, int levels) {
  if (frames.size() < 2 || levels == 0) return;
  // Of one parent.
  std::ranges::sort(frames, {}, [&](std::uint32_t f) {
    return std::tuple(frames_[f].node, frames_[f].parent, frames_[f].fewest, frames_[f].most);
  });
  std::size_t kept = 0;
  for (std::size_t i = 1; i < frames.size(); ++i) {
    StackFrame last = frames_[frames[kept]];
    const StackFrame& next = frames_[frames[i]];
    if (last.node != next.node || last.parent != next.parent || next.fewest > last.most + 1) {
      frames[++kept] = frames[i];
      continue;
    }
    last.most = std::max(last.most, next.most);
    frames[kept] = push(last);
  }
  frames.resize(kept + 1);
  // Of parents that can become one.
  std::ranges::sort(frames, {}, [&](std::uint32_t f) {
    return std::tuple(frames_[f].node, frames_[f].fewest, frames_[f].most, frames_[f].parent);
  });
  const auto alike = [&](std::uint32_t a, std::uint32_t b) {
    return frames_[a].node == frames_[b].node && frames_[a].fewest == frames_[b].fewest &&
           frames_[a].most == frames_[b].most && frames_[b].parent != StackFrame::kNone;
  };
  std::vector<std::uint32_t> merged, parents;
  for (auto first = frames.begin(); first != frames.end();) {
    const auto end = std::find_if_not(first + 1, frames.end(),
                                      [&](std::uint32_t f) { return alike(*first, f); });
    parents.clear();
    for (auto i = first; i != end; ++i) parents.push_back(frames_[*i].parent);
    merge(parents, levels - 1);
    StackFrame frame = frames_[*first];
    for (const std::uint32_t parent : parents) {
      frame.parent = parent;
      merged.push_back(push(frame));
    }
    first = end;
  }
  frames = std::move(merged);
}

void Simulation::merge_reached() {
  if (reached_.size() < 2) return;
  std::ranges::sort(reached_, {}, [](const Thread& t) { return std::pair(t.state, t.frame); });
  if (std::ranges::adjacent_find(reached_, {}, &Thread::state) == reached_.end()) return;
  std::vector<Thread> merged;
  std::vector<std::uint32_t> frames;
  for (std::size_t first = 0, end = 0; first < reached_.size(); first = end) {
    const std::uint32_t state = reached_[first].state;
    frames.clear();
    for (; end < reached_.size() && reached_[end].state == state; ++end)
      frames.push_back(reached_[end].frame);
    merge(frames, kMergedLevels);
    for (const std::uint32_t frame : frames) merged.push_back({state, frame});
  }
  reached_ = std::move(merged);
}

Simulation::Set Simulation::close() {
  reached_.clear();
  for (std::size_t i = 0; i < visited_.size() && !overflowed_; ++i) {
    overflowed_ |= visits_ + visited_.size() > kMostVisits;
    const auto [id, frame] = visited_[i];
    if (id == Thread::kDone || automaton_.states[id].kind == Automaton::Kind::kBytes) {
      reached_.push_back({id, frame});
      overflowed_ |= reached_.size() > kMostThreads;
      continue;
    }
    const Automaton::State& state = automaton_.states[id];
    if (state.kind == Automaton::Kind::kSplit) {
      for (std::uint32_t t = 0; t < state.count; ++t)
        visit(automaton_.targets[state.first + t], frame);
    } else if (state.kind == Automaton::Kind::kReturn) {
      return_to(frame);
    } else if (state.kind == Automaton::Kind::kCall && state.first == kNoState) {
      visit(state.target, frame);
    } else if (state.kind == Automaton::Kind::kCall) {
      if (depths_[frame] < kMostDepth) visit(state.target, push({state.first, 0, 0, frame}));
    } else {
      const Automaton::Repetition& repetition = automaton_.repetitions[state.first];
      if (repetition.min == 0) visit(repetition.next, frame);
      if (depths_[frame] < kMostDepth)
        visit(automaton_.bodies[repetition.body],
              push({StackFrame::kRepetition | state.first, 0, 0, frame}));
    }
  }
  visits_ += visited_.size();
  visited_.clear();
  visited_index_.clear();
  if (overflowed_) return kDead;
  merge_reached();
  return add_set(reached_);
}

Simulation::Set Simulation::add_set(std::span<const Thread> threads) {
  std::uint64_t hash = threads.size();
  for (const Thread& thread : threads) hash = mixed(hash, hash_of(thread));
  const auto fresh = static_cast<Set>(sets_.size());
  const Set found = set_index_.find_or_add(
      hash, fresh, [&](Set other) { return std::ranges::equal(this->threads(other), threads); });
  if (found != fresh) return found;
  sets_.push_back(
      {static_cast<std::uint32_t>(threads_.size()), static_cast<std::uint32_t>(threads.size())});
  threads_.insert(threads_.end(), threads.begin(), threads.end());
  if (following_.size() < sets_.size())
    following_.push_back(std::make_unique<std::array<Set, 256>>());
  following_[fresh]->fill(fresh == kDead ? kDead : kNotKnown);
  overflowed_ |= sets_.size() >= kMostSets;
  return fresh;
}

Simulation::Set Simulation::find_step(Set set, std::uint8_t byte) {
  if (overflowed_) return kDead;
  for (std::uint32_t i = 0; i < sets_[set].count; ++i) {
    const Thread thread = threads_[sets_[set].first + i];
    if (thread.state == Thread::kDone) continue;
    const Automaton::State& state = automaton_.states[thread.state];
    for (std::uint32_t e = 0; e < state.count; ++e) {
      const Automaton::Edge& edge = automaton_.edges[state.first + e];
      if (edge.first > byte || byte > edge.last) continue;
      visit(edge.target, thread.frame);
      break;
    }
  }
  const Set next = visited_.empty() ? kDead : close();
  return (*following_[set])[byte] = next;
}

Simulation::Set Simulation::start() {
  visit(automaton_.start, push({}));
  return close();
}

Simulation::Set Simulation::start_at(std::uint32_t state) {
  const std::uint32_t body = automaton_.states[state].body;
  const std::uint32_t node =
      body == kNoState ? StackFrame::kUnknown : StackFrame::kRepetition | body;
  visit(state, push({node, 0, 0, StackFrame::kNone}));
  return close();
}

Simulation::Set Simulation::after_return(std::uint32_t frame) {
  return_to(frame);
  return close();
}

Simulation::Set Simulation::after_repetition(std::uint32_t frame) {
  const StackFrame top = frames_[frame];
  visit(automaton_.repetitions[top.node & ~StackFrame::kRepetition].next, top.parent);
  return close();
}

Simulation::Set Simulation::enter(const Configuration& configuration) {
  std::vector<std::uint32_t> frames;
  for (StackFrame f : configuration.frames) {
    if (f.parent != StackFrame::kNone) f.parent = frames[f.parent];
    frames.push_back(push(f));
  }
  for (const Thread& thread : configuration.threads) visit(thread.state, frames[thread.frame]);
  return close();
}

Configuration Simulation::leave(Set set) const {
  Configuration out;
  std::vector<std::uint32_t> left(frames_.size(), StackFrame::kNone);  // where frames are in `out`
  std::vector<std::uint32_t> chain;
  for (const Thread& thread : threads(set)) {
    std::uint32_t next = thread.frame;
    for (; next != StackFrame::kNone && left[next] == StackFrame::kNone;
         next = frames_[next].parent)
      chain.push_back(next);
    for (; !chain.empty(); chain.pop_back()) {
      StackFrame frame = frames_[chain.back()];
      if (frame.parent != StackFrame::kNone) frame.parent = left[frame.parent];
      left[chain.back()] = static_cast<std::uint32_t>(out.frames.size());
      out.frames.push_back(frame);
    }
    out.threads.push_back({thread.state, left[thread.frame]});
  }
  return out;
}

}  // namespace strata
