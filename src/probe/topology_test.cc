#include "probe/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace strata {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST(Topology, ReadsListsOfProcessors) {
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11\n"),
              ::testing::Optional(ElementsAre(0, 1, 2, 3, 8, 10, 11)));
  EXPECT_THAT(parse_cpu_list("5"), ::testing::Optional(ElementsAre(5)));
  EXPECT_THAT(parse_cpu_list("\n"), ::testing::Optional(IsEmpty()));
  for (const char* wrong :
       {"a", "1-", "-1", "3-1", "1,,2", "2,1", "1,1", "0-99999999", "1 2", "2147483647"})
    EXPECT_EQ(parse_cpu_list(wrong), std::nullopt) << wrong;
}

TEST(Topology, KeepsOnlyUsableProcessorsOfNodes) {
  const std::vector<std::string> lists{"0-3,8-11\n", "4-7,12-15\n", "\n", "16-19\n"};
  const std::vector<int> usable{2, 3, 6, 11, 15};
  EXPECT_THAT(usable_nodes(lists, usable), ElementsAre(ElementsAre(2, 3, 11), ElementsAre(6, 15)));
}

TEST(Topology, OneNodeBindsNobody) {
  EXPECT_THAT(worker_processors({{0, 1, 2, 3}}, 4), IsEmpty());
  EXPECT_THAT(worker_processors({}, 4), IsEmpty());
}

TEST(Topology, WorkersFollowTheNodesInProportion) {
  const std::vector<int> large{0, 1, 2, 3, 4, 5}, small{6, 7, 8};
  EXPECT_THAT(worker_processors({large, small}, 3), ElementsAre(large, large, small));
  EXPECT_THAT(worker_processors({large, small}, 1), ElementsAre(large));
  const auto many = worker_processors({small, large}, 18);
  ASSERT_THAT(many, SizeIs(18));
  EXPECT_EQ(std::ranges::count(many, small), 6);
  EXPECT_TRUE(std::ranges::is_partitioned(many, [&](const auto& node) { return node == small; }));
}

TEST(Topology, TakesTheCoresThatTheQuotaAllowsAndSaysWhy) {
  const auto expect = [](const HardwareProfile& profile, int threads, const std::string& why) {
    EXPECT_EQ(default_threads(profile), threads);
    EXPECT_EQ(explain_default_threads(profile), why);
  };
  expect({kGiB, 1, {}, {{0}}}, 1, "one thread per physical core");
  expect({kGiB, 8, 12, {{0, 1}}}, 8, "one thread per physical core");
  expect({kGiB, 8, 3, {}}, 3, "the control group allows 3 of 8 cores");
  expect({kGiB, 2, 1.5, {}}, 2, "the control group allows 1.5 of 2 cores");
  expect({kGiB, 2, 0.5, {}}, 1, "the control group allows 0.5 of 2 cores");
  expect({kGiB, 1, 0.25, {}}, 1, "the control group allows 0.25 of 1 core");
  expect({kGiB, 2, 1e18, {}}, 2, "one thread per physical core");
  expect({kGiB, 4096, 2000.5, {}}, 1024, "the most, of 4096 cores");
  expect({kGiB, 2, {}, {{0}, {1}}}, 2, "one thread per physical core, on 2 memory nodes");
  expect({kGiB, 4096, {}, {}}, 1024, "the most, of 4096 cores");
}

TEST(Topology, CountsTheThreadsThatDoNotOnlyWait) {
  EXPECT_EQ(most_useful_threads({kGiB, 2, {}, {{0, 1}, {2, 3}}}), 4);
  EXPECT_EQ(most_useful_threads({kGiB, 2, 1.5, {{0, 1, 2, 3}}}), 2);
  EXPECT_EQ(most_useful_threads({kGiB, 2, 0.5, {{0, 1}}}), 1);
  EXPECT_EQ(most_useful_threads({kGiB, 2, 1e18, {}}), 2);
  EXPECT_EQ(processors_of({kGiB, 2, 0.5, {{0, 1}, {2, 3}}}), 4);
}

TEST(Topology, FindsControlGroupsOfBothVersions) {
  EXPECT_THAT(control_group_folders("0::/user/app\n", "cpu"),
              ElementsAre("/sys/fs/cgroup/user/app", "/sys/fs/cgroup/user", "/sys/fs/cgroup",
                          "/sys/fs/cgroup/unified/user/app", "/sys/fs/cgroup/unified/user",
                          "/sys/fs/cgroup/unified"));
  const std::string first = "5:memory:/box\n4:cpuset:/box\n3:cpu,cpuacct:/box\n1:name=x:/a:b\n";
  EXPECT_THAT(control_group_folders(first, "cpu"),
              ElementsAre("/sys/fs/cgroup/cpu/box", "/sys/fs/cgroup/cpu"));
  EXPECT_THAT(control_group_folders(first, "memory"), Contains("/sys/fs/cgroup/memory"));
  EXPECT_THAT(control_group_folders(first, "memory"), Not(Contains("/sys/fs/cgroup/cpu")));
  EXPECT_THAT(control_group_folders("", "cpu"), IsEmpty());
}

}  // namespace
}  // namespace strata
