// A fixed team of threads that run one function together and meet at barriers. Built for thousands
// of barriers per second: threads spin briefly, then sleep; an idle team uses no processor time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace strata {

class ThreadTeam;

// One thread's place in a running team.
class Worker {
 public:
  Worker(ThreadTeam& team, int index, int count) : team_(team), index_(index), count_(count) {}
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
    const std::int64_t grains = (total + grain - 1) / grain;
    const auto cut = [&](std::int64_t i) {
      const std::int64_t at = grains * i / count_ * grain;
      return at < total ? at : total;
    };
    return {cut(index_), cut(index_ + 1)};
  }

 private:
  ThreadTeam& team_;
  int index_;
  int count_;
};

class ThreadTeam {
 public:
  explicit ThreadTeam(int threads);  // the caller of run() is one of them
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int size() const { return size_; }

  // Runs `work` on every thread and returns when all are done. `work` must not throw.
  // REQUIRES: called from one thread at a time, never from inside `work`.
  void run(const std::function<void(Worker&)>& work);

 private:
  friend class Worker;
  void loop(int index);
  void barrier();

  const int size_;
  const std::function<void(Worker&)>* work_ = nullptr;
  std::atomic<std::uint32_t> epoch_{0};  // counts runs; its change starts the sleepers
  std::atomic<bool> stop_{false};
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> generation_{0};  // counts barriers
  std::vector<std::thread> threads_;
};

}  // namespace strata
