// The only place outside device folders that asks which compiler or machine this is.
#pragma once

#include <span>

#if defined(__x86_64__)
#include <immintrin.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

namespace strata {

// Tells the processor that the thread is spinning.
inline void spin_pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Lets the calling thread, and those that it starts, take less of a processor that others want too.
// For good; does nothing where the system cannot.
inline void take_less_processor() {
#if defined(__linux__)
  constexpr int kNicer = 10;  // about a tenth of what another thread gets
  // Of one thread here, not of the process as in POSIX.
  const auto self = static_cast<id_t>(gettid());
  (void)setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + kNicer);
#endif
}

// While it lives, the thread that made it runs on these processors only. Does nothing for an empty
// list, and where the system cannot or may not do so.
class ProcessorBinding {
 public:
  explicit ProcessorBinding([[maybe_unused]] std::span<const int> processors) {
#if defined(__linux__)
    if (processors.empty() || sched_getaffinity(0, sizeof before_, &before_) != 0) return;
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    for (const int processor : processors)
      if (processor >= 0 && processor < CPU_SETSIZE) CPU_SET(processor, &wanted);
    bound_ = sched_setaffinity(0, sizeof wanted, &wanted) == 0;
#endif
  }
  ~ProcessorBinding() {
#if defined(__linux__)
    if (bound_) sched_setaffinity(0, sizeof before_, &before_);
#endif
  }
  ProcessorBinding(const ProcessorBinding&) = delete;
  ProcessorBinding& operator=(const ProcessorBinding&) = delete;

 private:
#if defined(__linux__)
  bool bound_ = false;
  cpu_set_t before_;
#endif
};

}  // namespace strata
