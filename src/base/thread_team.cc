#include "base/thread_team.h"

#include "base/platform.h"

namespace strata {
namespace {

constexpr int kSpins = 4000;  // a few tens of microseconds

void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    spin_pause();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

void Worker::barrier() { team_.barrier(); }

ThreadTeam::ThreadTeam(int threads) : size_(threads < 1 ? 1 : threads) {
  for (int i = 1; i < size_; ++i) threads_.emplace_back([this, i] { loop(i); });
}

ThreadTeam::~ThreadTeam() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(Worker&)>& work) {
  work_ = &work;
  if (size_ > 1) {
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
  }
  Worker self(*this, 0, size_);
  work(self);
  barrier();
}

void ThreadTeam::loop(int index) {
  std::uint32_t seen = 0;
  while (true) {
    wait_for_change(epoch_, seen);
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    Worker self(*this, index, size_);
    (*work_)(self);
    barrier();
  }
}

void ThreadTeam::barrier() {
  if (size_ == 1) return;
  const std::uint32_t before = generation_.load(std::memory_order_acquire);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
  } else {
    wait_for_change(generation_, before);
  }
}

}  // namespace strata
