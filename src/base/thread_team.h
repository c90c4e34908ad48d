// A fixed team of threads that run one function together and meet at barriers. Built for tens of
// thousands of barriers per second: threads spin briefly, then give way, then sleep; an idle team
// uses no processor time.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <thread>
#include <vector>

namespace strata {

class ThreadTeam;

// Keeps what different threads write out of each other's cache lines; two lines, since processors
// fetch them in pairs.
constexpr std::size_t kSeparate = 128;

// One thread's place in a running team.
class Worker {
 public:
  Worker(ThreadTeam& team, int index, int count)
      : team_(team), index_(index), count_(count), near_{0, count} {}
  int index() const { return index_; }
  int count() const { return count_; }

  // Returns once every worker has called it; what was written before is visible after.
  void barrier();

  struct Range {
    std::int64_t first;
    std::int64_t last;
  };
  // This worker's contiguous share of [0, total), cut at multiples of `grain`.
  Range share(std::int64_t total, std::int64_t grain = 1) const {
    return share_of(index_, total, grain);
  }

  // Calls f(Range) for parts of [0, total), cut at multiples of `grain`, until all workers together
  // have done every part once. A worker starts with its share, so that the same thread mostly comes
  // to the same rows, and then takes from those that are behind, its own node's first. Like share()
  // it does not wait for the others. REQUIRES: every worker of the run makes the same calls in the
  // same order.
  template <typename F>
  void each_part(std::int64_t total, std::int64_t grain, F f);

 private:
  friend class ThreadTeam;
  static constexpr int kTakenBits = 16;  // of Share::taken; the others count loops, for years
  static constexpr std::int64_t kMostGrains = (1 << kTakenBits) - 1;

  Range share_of(int index, std::int64_t total, std::int64_t grain) const {
    const std::int64_t grains = (total + grain - 1) / grain;
    const auto cut = [&](std::int64_t i) { return std::min(grains * i / count_ * grain, total); };
    return {cut(index), cut(index + 1)};
  }
  // Whose share comes `step`th: its own, then those of its node, then the others.
  int owner(int step) const {
    const auto first = static_cast<int>(near_.first), last = static_cast<int>(near_.last);
    if (step < last - first) return first + (index_ - first + step) % (last - first);
    return (first + step) % count_;
  }
  // The next grains of `owner`'s share in this loop, or an empty range when all are taken.
  Range take(int owner, std::int64_t grains);

  ThreadTeam& team_;
  int index_;
  int count_;
  Range near_;              // the workers of its node
  std::uint64_t loop_ = 0;  // calls of each_part in all runs so far, the same in every worker
};

class ThreadTeam {
 public:
  // The caller of run() is one of the threads. `processors` says for each which it keeps to while
  // it works: those of a memory node, neighbours the same; empty: all may run anywhere.
  explicit ThreadTeam(int threads, std::vector<std::vector<int>> processors = {});
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }
  bool bound() const { return !processors_.empty(); }

  // Runs `work` on every thread and returns when all are done. `work` must not throw.
  // REQUIRES: called from one thread at a time, never from inside `work`.
  void run(const std::function<void(Worker&)>& work);

 private:
  friend class Worker;

  // How a thread waits.
  struct alignas(kSeparate) Patience {
    // Until then it gives its processor to nobody: who had it last kept it long.
    std::chrono::steady_clock::time_point keeps_until;
    // Whether anything but pausing is worth while before it sleeps; gives way where it may.
    bool stays_awake(std::chrono::steady_clock::time_point since);
  };
  // A count that threads wait for. Raising it costs a system call only when some thread sleeps.
  struct alignas(kSeparate) Signal {
    std::atomic<std::uint32_t> value{0};
    std::atomic<int> sleepers{0};
    void raise();
    void wait_beyond(std::uint32_t old, Patience& patience);
  };
  struct alignas(kSeparate) Arrivals {
    std::atomic<int> count{0};
  };
  // The loop in which the share was last taken from, and how many of its grains are taken.
  struct alignas(kSeparate) Share {
    std::atomic<std::uint64_t> taken{0};
  };

  void loop(int index);
  void work_as(int index);
  void barrier(int index);
  bool last_to_arrive(int index);

  std::span<const int> processors_of(int index) const;
  Worker::Range node_of(int index) const;  // the workers that keep to the same processors

  const int size_;
  const std::vector<std::vector<int>> processors_;  // by worker, or none
  const std::function<void(Worker&)>* work_ = nullptr;
  bool stop_ = false;
  std::uint64_t loops_ = 0;  // each_part calls before this run
  Signal start_;             // counts runs
  Signal released_;          // counts barriers
  Arrivals groups_arrived_;
  std::vector<Arrivals> arrived_;   // by group
  std::vector<Share> shares_;       // by worker
  std::vector<Patience> patience_;  // by worker
  std::vector<std::thread> threads_;
};

template <typename F>
void Worker::each_part(std::int64_t total, std::int64_t grain, F f) {
  if (count_ == 1) {
    if (total > 0) f(Range{0, total});
    return;
  }
  ++loop_;
  grain *= 1 + total / (grain * kMostGrains);
  for (int i = 0; i < count_; ++i) {
    const int from = owner(i);
    const Range share = share_of(from, total, grain);
    const std::int64_t grains = (share.last - share.first + grain - 1) / grain;
    for (Range part = take(from, grains); part.first < part.last; part = take(from, grains))
      f(Range{share.first + part.first * grain,
              std::min(share.first + part.last * grain, share.last)});
  }
}

}  // namespace strata
