// How the program's heap treats what is freed.
#pragma once

#include "base/units.h"

namespace strata::apps {

// Gives large blocks that are freed back to the system at once, for a budget counts what the
// process holds. To be called before there are threads. Does nothing where the C library has no
// such settings.
void keep_heap_small();

// Gives back what is free, and says what the process holds then.
Bytes resident_without_free();

}  // namespace strata::apps
