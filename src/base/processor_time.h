// How long threads have run.
#pragma once

#include <ctime>

namespace strata {

// Of POSIX clock `clock`.
inline double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// That the calling thread has had a processor.
inline double thread_processor_seconds() { return seconds_of(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace strata
