#include "heap.h"

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "probe/machine.h"

namespace strata::apps {

void keep_heap_small() {
#if defined(__GLIBC__)
  // Unset, both follow the largest block freed: the buffer that weights are read through would let
  // the arena of a thread that loads models keep twice its size for ever.
  constexpr int kLarge = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
#endif
}

Bytes resident_without_free() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
  return resident_bytes();
}

}  // namespace strata::apps
