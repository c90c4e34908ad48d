// How the program's heap treats what is freed.
#pragma once

namespace strata::apps {

// Gives large blocks that are freed back to the system at once, for a budget counts what the
// process holds. To be called before there are threads. Does nothing where the C library has no
// such settings.
void keep_heap_small();

}  // namespace strata::apps
