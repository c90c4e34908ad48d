#include "base/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>

#include "tests/processor_time.h"

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
  for (const int count : {2, 4, 19}) {
    ThreadTeam team(count);
    std::vector<int> slots(static_cast<std::size_t>(count));
    std::atomic<int> wrong{0};
    for (int round = 0; round < 50; ++round) {
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
    EXPECT_EQ(wrong.load(), 0) << count;
  }
}

TEST(ThreadTeam, PartsCoverEveryLoopOnceAtGrainBorders) {
  for (const int count : {1, 2, 3, 9}) {
    ThreadTeam team(count);
    for (const std::int64_t total : {0, 1, 8, 9, 100, 4097}) {
      constexpr int kLoops = 5;  // one after the other, without a barrier
      std::vector<std::atomic<int>> done(static_cast<std::size_t>(total * kLoops));
      std::atomic<int> off_grain{0};
      for (int round = 0; round < 3; ++round)
        team.run([&](Worker& w) {
          for (int loop = 0; loop < kLoops; ++loop)
            w.each_part(total, 8, [&](Worker::Range part) {
              if (part.first % 8 != 0 || (part.last % 8 != 0 && part.last != total)) ++off_grain;
              for (std::int64_t i = part.first; i < part.last; ++i)
                ++done[static_cast<std::size_t>(loop * total + i)];
            });
        });
      EXPECT_EQ(off_grain.load(), 0);
      for (const std::atomic<int>& times : done) ASSERT_EQ(times.load(), 3);
    }
  }
}

TEST(ThreadTeam, PartsGrowWhereGrainsAreTooManyToCount) {
  ThreadTeam team(2);
  constexpr std::int64_t kTotal = 1'000'000'000'007;
  std::atomic<std::int64_t> done{0};
  team.run([&](Worker& w) {
    w.each_part(kTotal, 1, [&](Worker::Range part) { done += part.last - part.first; });
  });
  EXPECT_EQ(done.load(), kTotal);
}

TEST(ThreadTeam, WhoIsBehindLeavesItsPartsToTheOthers) {
  ThreadTeam team(3);
  std::atomic<std::int64_t> done{0};
  std::atomic<int> late_parts{0};
  team.run([&](Worker& w) {
    if (w.index() == 1)
      while (done.load() < 1000) std::this_thread::yield();
    w.each_part(1000, 8, [&](Worker::Range part) {
      if (w.index() == 1) ++late_parts;
      done += part.last - part.first;
    });
  });
  EXPECT_EQ(done.load(), 1000);
  EXPECT_EQ(late_parts.load(), 0);
}

TEST(ThreadTeam, PartsComeOnceWhereWorkersAreBoundToNodes) {
  const std::vector<int> one{0}, other{1};  // a processor that is not there binds nobody
  ThreadTeam team(5, {one, one, one, other, other});
  EXPECT_TRUE(team.bound());
  std::vector<std::atomic<int>> done(1000);
  team.run([&](Worker& w) {
    w.each_part(1000, 8, [&](Worker::Range part) {
      for (std::int64_t i = part.first; i < part.last; ++i) ++done[static_cast<std::size_t>(i)];
    });
  });
  for (const std::atomic<int>& times : done) EXPECT_EQ(times.load(), 1);
}

TEST(ThreadTeam, BindsItsThreadsAndGivesTheCallerBack) {
  const auto allowed = [] {
    cpu_set_t set;
    CPU_ZERO(&set);
    EXPECT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
  };
  const cpu_set_t before = allowed();
  int processor = CPU_SETSIZE - 1;
  while (processor > 0 && !CPU_ISSET(processor, &before)) --processor;
  ThreadTeam team(2, {{processor}, {processor}});
  std::atomic<int> elsewhere{0};
  team.run([&](Worker& w) {
    w.barrier();
    const cpu_set_t set = allowed();
    if (CPU_COUNT(&set) != 1 || !CPU_ISSET(processor, &set)) ++elsewhere;
  });
  EXPECT_EQ(elsewhere.load(), 0);
  const cpu_set_t after = allowed();
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

TEST(ThreadTeam, UsesNoProcessorTimeWhenIdle) {
  ThreadTeam team(8);
  team.run([](Worker& w) { w.barrier(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const testing::ProcessorTime time;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_LT(time.seconds(), 0.1);  // one thread that spins would use 0.5
}

}  // namespace
}  // namespace strata
