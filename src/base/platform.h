// The only place outside device folders that asks which compiler or machine this is.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
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

}  // namespace strata
