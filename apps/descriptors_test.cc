#include "descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

namespace strata::apps {
namespace {

// In a process of its own, whose exit code says which of the checks failed.
template <typename Checks>
int in_child(Checks checks) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(checks());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Descriptors, OpenNothingInThePlaceOfClosedStandardOnes) {
  for (int closed = 0; closed < 8; ++closed)  // a bit for each
    EXPECT_EQ(in_child([closed] {
                const int spare = ::fcntl(::open("/dev/null", O_RDWR), F_DUPFD, 10);
                for (int each = 0; each <= 2; ++each) {
                  ::dup2(spare, each);
                  if ((closed >> each & 1) != 0) ::close(each);
                }
                occupy_standard_descriptors();
                if (::open("/dev/null", O_RDONLY) <= 2) return 1;
                char byte = 0;
                if ((::read(0, &byte, 1) < 0) != ((closed & 1) != 0)) return 2;
                if (can_read_standard_input() != ((closed & 1) == 0)) return 3;
                for (int each = 1; each <= 2; ++each)
                  if ((::write(each, &byte, 1) < 0) != ((closed >> each & 1) != 0)) return 4;
                return 0;
              }),
              0)
        << closed;
}

TEST(Descriptors, MayBeAsManyAsTheHardLimitSays) {
  EXPECT_EQ(in_child([] {
              rlimit limit{};
              ::getrlimit(RLIMIT_NOFILE, &limit);
              limit.rlim_cur = 20;
              limit.rlim_max = std::min<rlim_t>(limit.rlim_max, 200);
              ::setrlimit(RLIMIT_NOFILE, &limit);
              if (raise_descriptor_limit() != limit.rlim_max) return 1;
              return ::fcntl(2, F_DUPFD, static_cast<int>(limit.rlim_max) - 1) == -1 ? 2 : 0;
            }),
            0);
}

}  // namespace
}  // namespace strata::apps
