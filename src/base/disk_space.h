// What a file system has left.
#pragma once

#include "base/units.h"

namespace strata {

constexpr Bytes kSpareDiskBytes = 16 * kMiB;  // left to others

// Of the file system where an open file lies; more than any file where it does not tell.
Bytes free_disk_bytes(int descriptor);

}  // namespace strata
