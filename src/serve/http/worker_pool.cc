#include "serve/http/worker_pool.h"

#include <algorithm>
#include <utility>

#include "base/platform.h"

namespace strata::http {

WorkerPool::WorkerPool(int threads, std::size_t max_queued) : max_queued_(max_queued) {
  for (int i = 0; i < std::max(threads, 1); ++i) threads_.emplace_back([this] { work(); });
}

WorkerPool::~WorkerPool() { stop(); }

bool WorkerPool::try_push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || tasks_.size() >= max_queued_) return false;
  tasks_.push_back(std::move(task));
  ready_.notify_one();
  return true;
}

void WorkerPool::push(std::function<void()> task) {
  const std::lock_guard lock(mutex_);
  if (stopped_) return;
  tasks_.push_back(std::move(task));
  ready_.notify_one();
}

std::size_t WorkerPool::queued() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

void WorkerPool::stop() {
  std::deque<std::function<void()>> left;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    left.swap(tasks_);
  }
  ready_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void WorkerPool::work() {
  // Reading many requests at once must not hold up the answers that are under way.
  take_less_processor();
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (stopped_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    try {
      task();
    } catch (...) {
      // What it held of an exchange is gone with it, and so that answers 500.
    }
  }
}

}  // namespace strata::http
