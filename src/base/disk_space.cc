#include "base/disk_space.h"

#include <sys/statvfs.h>

namespace strata {

Bytes free_disk_bytes(int descriptor) {
  struct statvfs info {};
  if (::fstatvfs(descriptor, &info) != 0) return ~Bytes{0};  // then writing will tell
  return static_cast<Bytes>(info.f_bavail) * info.f_frsize;
}

}  // namespace strata
