#include "descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <limits>

namespace strata::apps {

void occupy_standard_descriptors() {
  // An open takes the lowest one that is free.
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor)
    if (fcntl(descriptor, F_GETFD) == -1)
      (void)::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

bool can_read_standard_input() {
  const int flags = fcntl(STDIN_FILENO, F_GETFL);
  return flags != -1 && (flags & O_ACCMODE) != O_WRONLY;
}

std::size_t raise_descriptor_limit() {
  constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnlimited;
  const rlimit raised{limit.rlim_max, limit.rlim_max};
  // Some systems take less than the limit that they name.
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  return limit.rlim_cur == RLIM_INFINITY ? kUnlimited : static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace strata::apps
