// The threads that call handlers, and the bounded queue before them. What a task throws ends that
// task alone.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace strata::http {

class WorkerPool {
 public:
  WorkerPool(int threads, std::size_t max_queued);
  ~WorkerPool();  // stop()

  // False where the queue is full or the pool stopped. Thread-safe.
  bool try_push(std::function<void()> task);
  // For what was let in before: however many wait. Does nothing where the pool stopped.
  void push(std::function<void()> task);
  std::size_t queued() const;

  // Returns when no task runs; those that wait are destroyed. REQUIRES: no task calls it.
  void stop();

 private:
  void work();

  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::function<void()>> tasks_;
  std::size_t max_queued_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strata::http
