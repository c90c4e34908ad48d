#include "base/thread_team.h"

#include <chrono>

#include "base/platform.h"

namespace strata {
namespace {

// A waiting thread pauses, then lets others have its processor and looks again, then sleeps. Where
// nobody else wants the processor it waits for long, as to be woken takes long where a processor
// went idle, and the longer the busier a virtual machine's host is. Another of the team soon gives
// the processor back; a stranger keeps it for milliseconds, at every barrier, unless it is not
// offered.
using Clock = std::chrono::steady_clock;
constexpr auto kAwake = std::chrono::microseconds(2000);
constexpr auto kAwakeKeeping = std::chrono::microseconds(50);
constexpr auto kLongGone = std::chrono::microseconds(1000);
constexpr auto kKeeping = std::chrono::milliseconds(100);
constexpr int kPauses = 32;  // a microsecond or so

// Threads that arrive at one counter; more than this meet in groups first.
constexpr int kGroup = 8;

// A part is this fraction of what a share has left: few parts, and small ones towards the end.
constexpr std::int64_t kPart = 4;

}  // namespace

void ThreadTeam::Signal::raise() {
  // Either this sees the sleeper or the sleeper sees the new value: both orders are sequential.
  value.fetch_add(1);
  if (sleepers.load() > 0) value.notify_all();
}

bool ThreadTeam::Patience::stays_awake(Clock::time_point since) {
  const Clock::time_point now = Clock::now();
  if (now < keeps_until) return now - since < kAwakeKeeping;
  if (now - since >= kAwake) return false;
  std::this_thread::yield();
  const Clock::time_point back = Clock::now();
  if (back - now >= kLongGone) keeps_until = back + kKeeping;
  return true;
}

void ThreadTeam::Signal::wait_beyond(std::uint32_t old, Patience& patience) {
  const auto changes_soon = [&] {
    for (int i = 0; i < kPauses; ++i) {
      if (value.load(std::memory_order_acquire) != old) return true;
      spin_pause();
    }
    return false;
  };
  if (changes_soon()) return;
  const Clock::time_point since = Clock::now();
  while (patience.stays_awake(since))
    if (changes_soon()) return;
  sleepers.fetch_add(1);
  while (value.load() == old) value.wait(old);
  sleepers.fetch_sub(1);
}

void Worker::barrier() { team_.barrier(index_); }

Worker::Range Worker::take(int owner, std::int64_t grains) {
  std::atomic<std::uint64_t>& state = team_.shares_[static_cast<std::size_t>(owner)].taken;
  std::uint64_t seen = state.load(std::memory_order_relaxed);
  while (true) {
    // Whoever is in a later loop has found this one done.
    const std::uint64_t loop = seen >> kTakenBits;
    if (loop > loop_) return {0, 0};
    const auto taken = static_cast<std::int64_t>(loop == loop_ ? seen % (1 << kTakenBits) : 0);
    if (taken == grains) return {0, 0};
    const std::int64_t last = taken + std::max<std::int64_t>((grains - taken) / kPart, 1);
    if (state.compare_exchange_weak(seen, loop_ << kTakenBits | static_cast<std::uint64_t>(last),
                                    std::memory_order_relaxed))
      return {taken, last};
  }
}

ThreadTeam::ThreadTeam(int threads, std::vector<std::vector<int>> processors)
    : size_(std::max(threads, 1)),
      processors_(std::move(processors)),
      arrived_(static_cast<std::size_t>((size_ + kGroup - 1) / kGroup)),
      shares_(static_cast<std::size_t>(size_)),
      patience_(static_cast<std::size_t>(size_)) {
  for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { loop(i); });
}

ThreadTeam::~ThreadTeam() {
  stop_ = true;
  start_.raise();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(Worker&)>& work) {
  const ProcessorBinding binding(processors_of(0));
  work_ = &work;
  if (size_ > 1) start_.raise();
  work_as(0);
}

std::span<const int> ThreadTeam::processors_of(int index) const {
  if (!bound()) return {};
  return processors_[static_cast<std::size_t>(index)];
}

Worker::Range ThreadTeam::node_of(int index) const {
  if (!bound()) return {0, size_};
  const auto same = [&](int other) {
    return std::ranges::equal(processors_of(other), processors_of(index));
  };
  int first = index, last = index + 1;
  while (first > 0 && same(first - 1)) --first;
  while (last < size_ && same(last)) ++last;
  return {first, last};
}

void ThreadTeam::work_as(int index) {
  Worker self(*this, index, size_);
  self.loop_ = loops_;
  self.near_ = node_of(index);
  (*work_)(self);
  barrier(index);
  if (index == 0) loops_ = self.loop_;
}

void ThreadTeam::loop(int index) {
  const ProcessorBinding binding(processors_of(index));
  for (std::uint32_t runs = 0;; ++runs) {
    start_.wait_beyond(runs, patience_[static_cast<std::size_t>(index)]);
    if (stop_) return;
    work_as(index);
  }
}

// The last of each group to come counts for the group.
bool ThreadTeam::last_to_arrive(int index) {
  const auto last_of = [](Arrivals& arrivals, int expected) {
    if (arrivals.count.fetch_add(1, std::memory_order_acq_rel) + 1 < expected) return false;
    arrivals.count.store(0, std::memory_order_relaxed);
    return true;
  };
  const int group = index / kGroup;
  return last_of(arrived_[static_cast<std::size_t>(group)],
                 std::min(kGroup, size_ - group * kGroup)) &&
         (arrived_.size() == 1 || last_of(groups_arrived_, static_cast<int>(arrived_.size())));
}

void ThreadTeam::barrier(int index) {
  if (size_ == 1) return;
  const std::uint32_t before = released_.value.load(std::memory_order_relaxed);
  if (last_to_arrive(index))
    released_.raise();
  else
    released_.wait_beyond(before, patience_[static_cast<std::size_t>(index)]);
}

}  // namespace strata
