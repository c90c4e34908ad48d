#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <numeric>

namespace strata {
namespace {

TEST(ThreadTeam, SharesCoverTheRangeOnceAtGrainBorders) {
  for (const int count : {1, 2, 3, 7}) {
    ThreadTeam team(count);
    for (const std::int64_t total : {0, 1, 7, 8, 9, 100, 4097}) {
      std::int64_t next = 0;
      for (int i = 0; i < count; ++i) {
        const auto range = Worker(team, i, count).share(total, 8);
        EXPECT_EQ(range.first, next);
        EXPECT_TRUE(range.first % 8 == 0 || range.first == total);
        next = range.last;
      }
      EXPECT_EQ(next, total);
    }
  }
}

TEST(ThreadTeam, BarriersOrderWritesBetweenThreads) {
  ThreadTeam team(4);
  std::vector<int> slots(4);
  std::atomic<int> wrong{0};
  for (int round = 0; round < 200; ++round) {
    team.run([&](Worker& w) {
      for (int step = 0; step < 10; ++step) {
        slots[static_cast<std::size_t>(w.index())] = round * 10 + step;
        w.barrier();
        for (const int slot : slots)
          if (slot != round * 10 + step) ++wrong;
        w.barrier();
      }
    });
  }
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace strata
