// Whose turn it is.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "schedule/fair_queue.h"
#include "schedule/scheduler.h"

namespace strata {
namespace {

using testing::ElementsAre;

constexpr TokenId kAnswer = 7;

TEST(FairQueue, PreemptedOnesWaitForTheTurnOfTheirClient) {
  Sequence greedy, preempted, modest;
  greedy.client = preempted.client = 1;
  modest.client = 2;
  FairQueue queue(8);
  queue.push_back(greedy);
  queue.charge(0, 1, 100);
  queue.push_front(preempted);
  EXPECT_EQ(&queue.next(), &preempted);
  queue.push_back(modest);
  EXPECT_EQ(&queue.next(), &modest);
  queue.remove(modest);
  EXPECT_EQ(&queue.next(), &preempted);
  queue.remove(preempted);
  EXPECT_EQ(&queue.next(), &greedy);
  queue.remove(greedy);
  EXPECT_TRUE(queue.empty());
}

TEST(FairQueue, ClientsWithTheirShareOfSlotsComeBehindOthers) {
  Sequence greedy, modest, third;
  greedy.client = 1;
  modest.client = 2;
  third.client = 3;
  FairQueue queue(4);
  for (int i = 0; i < 3; ++i) queue.start(greedy);
  queue.push_back(greedy);
  EXPECT_FALSE(queue.must_wait(greedy)) << "nobody else wants the slot";
  EXPECT_EQ(queue.above_share(0), std::nullopt);
  queue.push_back(modest);
  queue.charge(0, 2, 1'000);
  EXPECT_EQ(&queue.next(), &modest) << "whatever was computed for it";
  EXPECT_TRUE(queue.must_wait(greedy));
  EXPECT_FALSE(queue.must_wait(modest));
  EXPECT_EQ(queue.above_share(0), 1u);
  EXPECT_EQ(queue.above_share(1), std::nullopt);
  queue.stop(greedy);
  EXPECT_EQ(queue.above_share(0), std::nullopt) << "a half is its share";
  queue.push_back(third);
  EXPECT_EQ(queue.above_share(0), std::nullopt) << "parts of a slot count as one";
  queue.start(greedy);
  EXPECT_EQ(queue.above_share(0), 1u);
  queue.remove(modest);
  queue.remove(third);
  EXPECT_EQ(&queue.next(), &greedy);
  queue.remove(greedy);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.slots_of(0, 1), 3);
}

TEST(FairQueue, HigherPrioritiesLeaveTheOthersFewerSlots) {
  Sequence high, low, other;
  high.priority = 1;
  other.client = 1;
  FairQueue queue(6);
  for (int i = 0; i < 4; ++i) queue.start(high);
  for (int i = 0; i < 2; ++i) queue.start(low);
  queue.push_back(other);
  EXPECT_EQ(queue.above_share(0), 0u);
  queue.stop(high);
  queue.stop(high);
  EXPECT_EQ(queue.above_share(0), std::nullopt);
}

class SchedulerFairness : public ::testing::Test {
 protected:
  void make(SchedulerConfig config) {
    scheduler_ = std::make_unique<Scheduler>(Scheduler::create(std::move(config)).value());
  }

  SequenceId add(int length, std::uint64_t client = 0, std::int32_t priority = 0,
                 TokenId from = 0) {
    NewSequence sequence;
    sequence.id = SequenceId{next_id_++};
    for (int i = 0; i < length; ++i) sequence.tokens.push_back(from + i);
    sequence.client = client;
    sequence.priority = priority;
    const SequenceId id = sequence.id;
    EXPECT_TRUE(scheduler_->add(std::move(sequence)).ok());
    return id;
  }

  // Each sequence finishes when `answer` tokens were generated. Returns the rows by sequence.
  std::map<std::int64_t, int> step(int answer = 0) {
    const StepPlan& plan = scheduler_->plan_step();
    std::map<std::int64_t, int> rows;
    std::vector<Confirmed> confirmed;
    for (const SequenceSlice& slice : plan.slices) {
      const auto count = static_cast<Position>(slice.tokens.size());
      rows[slice.sequence.value] = count;
      const bool whole = slice.first + count == scheduler_->find(slice.sequence)->known();
      const bool finished = whole && generated_[slice.sequence]++ >= answer;
      confirmed.push_back({slice.sequence, count,
                           whole && !finished ? std::span(&kAnswer, 1) : std::span<const TokenId>(),
                           finished});
    }
    EXPECT_TRUE(scheduler_->commit(confirmed).ok());
    const Status sound = scheduler_->check_invariants();
    EXPECT_TRUE(sound.ok()) << sound.message();
    return rows;
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::map<SequenceId, int> generated_;
  std::int64_t next_id_ = 0;
};

TEST_F(SchedulerFairness, ManyPromptsOfOneClientDoNotDelayAnothersSingleOne) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  for (int i = 0; i < 100; ++i) add(30, 1);
  for (int i = 0; i < 5; ++i) step();
  const SequenceId single = add(30, 2);
  for (int i = 0; i < 4; ++i) step();
  EXPECT_EQ(scheduler_->find(single), nullptr) << "two steps of its own, two of the others";
}

TEST_F(SchedulerFairness, ALongPromptUnderWayGivesWayToAShortOne) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  const SequenceId longest = add(1'000, 1);
  for (int i = 0; i < 5; ++i) step();
  const SequenceId shorter = add(10, 2);
  const auto rows = step();
  EXPECT_EQ(rows.at(shorter.value), 10);
  EXPECT_EQ(rows.at(longest.value), 6) << "the rest of the step is not lost";
}

TEST_F(SchedulerFairness, LongPromptsUnderWayTakeTurns) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  const SequenceId longest = add(1'000, 1);
  for (int i = 0; i < 5; ++i) step();
  const SequenceId longer = add(150, 2);
  std::map<std::int64_t, int> rows;
  while (scheduler_->find(longer) != nullptr)
    for (const auto& [id, count] : step()) rows[id] += count;
  EXPECT_NEAR(rows.at(longest.value), rows.at(longer.value), 16);
  const SequenceId third = add(150, 3), fourth = add(100, 2);
  rows.clear();
  for (int i = 0; i < 12; ++i)
    for (const auto& [id, count] : step()) rows[id] += count;
  for (const SequenceId id : {longest, third, fourth}) EXPECT_NEAR(rows[id.value], 64, 16);
}

TEST_F(SchedulerFairness, TurnsBeginAnewWhereNobodyHasAny) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  const SequenceId generating = add(4, 9);
  for (std::uint64_t client = 1; client <= 3; ++client) {
    add(400, client);
    for (int i = 0; i < 40; ++i) step(1'000);
  }
  EXPECT_NE(scheduler_->find(generating), nullptr);
  std::map<std::int64_t, int> rows;
  for (const std::uint64_t client : {1, 4}) add(100, client);
  for (int i = 0; i < 8; ++i)
    for (const auto& [id, count] : step(1'000)) rows[id] += count;
  EXPECT_NEAR(rows.at(4), rows.at(5), 16);
}

TEST_F(SchedulerFairness, ClientsGetEqualRowsWhateverTheirPromptsAreLike) {
  make({.max_rows = 16, .groups = {{4, 4'000, 0}}});
  std::map<std::uint64_t, int> rows;
  std::map<std::int64_t, std::uint64_t> client_of;
  for (int i = 0; i < 12; ++i) client_of[add(200, 1).value] = 1;
  for (int i = 0; i < 200; ++i) client_of[add(12, 2).value] = 2;
  for (int i = 0; i < 120; ++i) client_of[add(20, 3).value] = 3;
  for (int i = 0; i < 300; ++i)
    for (const auto& [id, count] : step()) rows[client_of.at(id)] += count;
  for (const std::uint64_t client : {1, 2, 3}) EXPECT_NEAR(rows[client], 1'600, 100) << client;
}

TEST_F(SchedulerFairness, OneClientsPromptsGoInOrder) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  std::vector<std::int64_t> ended;
  for (int i = 0; i < 10; ++i) add(10 + i, 5);
  for (int i = 0; i < 20; ++i)
    for (const auto& [id, count] : step())
      if (scheduler_->find(SequenceId{id}) == nullptr) ended.push_back(id);
  EXPECT_THAT(ended, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST_F(SchedulerFairness, TimeWithoutWorkEarnsNoTurns) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  for (int i = 0; i < 50; ++i) add(16, 1);
  for (int i = 0; i < 20; ++i) step();
  std::map<std::int64_t, std::uint64_t> client_of;
  for (int i = 0; i < 20; ++i) client_of[add(16, 2).value] = 2;
  int of_late_client = 0;
  for (int i = 0; i < 20; ++i)
    for (const auto& [id, count] : step()) of_late_client += client_of.contains(id) ? 1 : 0;
  EXPECT_NEAR(of_late_client, 10, 1);
}

TEST_F(SchedulerFairness, APreemptedSequenceHasItsTurnBeforeThoseWhoWait) {
  make({.max_rows = 16, .groups = {{4, 1'000, 0}}});
  const SequenceId first = add(8, 1);
  for (int i = 0; i < 2; ++i) step(100);
  for (int i = 0; i < 5; ++i) add(16, 2);
  ASSERT_TRUE(scheduler_->force_preempt(first).ok());
  EXPECT_TRUE(step(100).contains(first.value));
}

TEST_F(SchedulerFairness, HigherPrioritiesTakeThePlaceOfLowerOnes) {
  make({.max_rows = 16, .max_running = 2, .groups = {{4, 1'000, 0}}});
  const SequenceId low = add(8), lower = add(8, 0, -1);
  for (int i = 0; i < 3; ++i) step(100);
  const SequenceId high = add(4, 0, 9), higher = add(4, 0, 10);
  step(100);
  auto rows = step(100);
  EXPECT_TRUE(rows.contains(high.value) && rows.contains(higher.value));
  EXPECT_FALSE(rows.contains(low.value) || rows.contains(lower.value));
  EXPECT_EQ(scheduler_->stats().preemptions, 2);
  for (int i = 0; i < 5; ++i) rows = step(100);
  EXPECT_FALSE(rows.contains(low.value)) << "they have not finished";
  ASSERT_TRUE(scheduler_->cancel(high).ok());
  EXPECT_TRUE(step(100).contains(low.value));
}

TEST_F(SchedulerFairness, HigherPrioritiesTakeBlocksOfLowerOnesIfThatHelps) {
  make({.max_rows = 16, .groups = {{4, 8, 0}}});
  add(16);
  step(100);
  add(4, 0, 1);
  step(100);
  const SequenceId large = add(28, 0, 1);
  step(100);
  EXPECT_EQ(scheduler_->find(large)->computed, 0) << "its equal holds a block that it needs";
  EXPECT_EQ(scheduler_->stats().preemptions, 0);
  add(12, 0, 2);
  step(100);
  EXPECT_EQ(scheduler_->stats().preemptions, 1);
}

TEST_F(SchedulerFairness, TheLowestPriorityFinishesUnderAnEndlessLoad) {
  make({.max_rows = 16, .max_running = 3, .groups = {{4, 60, 0}}});
  for (int i = 0; i < 4; ++i) add(16, 1, 5);
  const SequenceId low = add(40, 2, -5);
  int steps = 0;
  while (scheduler_->find(low) != nullptr && ++steps < 2'000) {
    step(4);
    while (scheduler_->stats().waiting < 4) add(16, 1, 5);
  }
  EXPECT_LT(steps, 100);
  EXPECT_GT(steps, 10);
}

// Whatever the number of admissions before.
TEST_F(SchedulerFairness, WhoIsPreemptedDoesNotComeBackInPlaceOfTheOtherOne) {
  for (int before = 0; before < kAdmissionsPerLowest; ++before) {
    make({.max_rows = 16, .max_running = 1, .groups = {{4, 100, 0}}});
    for (int i = 0; i < before; ++i) {
      add(4, 1);
      step();
    }
    const SequenceId low = add(8, 1, -1);
    for (int i = 0; i < 3; ++i) step(1'000);
    const SequenceId high = add(8, 2);
    EXPECT_TRUE(step(1'000).contains(high.value)) << before;
    EXPECT_EQ(scheduler_->find(low)->computed, 0) << before;
  }
}

TEST_F(SchedulerFairness, ALowPriorityWithoutRoomHoldsNobodyUpBeforeItStarves) {
  make({.max_rows = 16, .groups = {{4, 20, 0}}});
  const SequenceId running = add(40, 1);
  for (int i = 0; i < 4; ++i) step(100);
  ASSERT_TRUE(scheduler_->hold(running, true).ok());  // it keeps its blocks
  const SequenceId low = add(60, 2, -1);
  std::uint64_t late = 0, steps = 0;
  for (; scheduler_->find(low)->computed == 0 && steps < 2 * kStarvingSteps; ++steps) {
    const SequenceId high = add(4, 3);
    if (!step().contains(high.value)) ++late;
    (void)scheduler_->cancel(high);  // where it is there yet
    if (steps == kStarvingSteps + 100) (void)scheduler_->cancel(running);
  }
  EXPECT_GE(steps, kStarvingSteps);
  EXPECT_LE(late, 110u) << "nobody before, and then all";
  EXPECT_NE(scheduler_->find(low), nullptr);
}

TEST_F(SchedulerFairness, NobodyIsPreemptedForBlocksThatOthersShare) {
  make({.max_rows = 64, .groups = {{4, 12, 0}}, .prefix_tokens = 4});
  add(28, 1);
  step(1'000);
  add(30, 2, -1);  // begins with the first seven blocks
  for (int i = 0; i < 2; ++i) step(1'000);
  EXPECT_EQ(scheduler_->stats().used_blocks[0] - scheduler_->stats().cached_blocks[0], 9);
  const SequenceId large = add(28, 3, 0, 500);
  for (int i = 0; i < 3; ++i) step(1'000);
  EXPECT_EQ(scheduler_->find(large)->computed, 0);
  EXPECT_EQ(scheduler_->stats().preemptions, 0) << "that gives one block, and three are free";
  ASSERT_TRUE(scheduler_->cancel(large).ok());
  const SequenceId small = add(10, 3, 0, 500);
  step(1'000);
  EXPECT_GT(scheduler_->find(small)->computed, 0);
}

TEST_F(SchedulerFairness, SmallOnesDoNotOvertakeWhoWaitsForRoom) {
  make({.max_rows = 64, .groups = {{4, 10, 0}}});
  add(16);
  step(8);
  const SequenceId large = add(36);
  int steps = 0;
  while (scheduler_->find(large) != nullptr && ++steps < 100) {
    add(4);
    step(8);
  }
  EXPECT_LT(steps, 25);
}

TEST_F(SchedulerFairness, RowsOfStretchesAreLimitedInAllOfThemTogether) {
  make({.max_rows = 64, .groups = {{4, 1'000, 0}}});
  const SequenceId single = add(4);
  step(100);
  for (int i = 0; i < 3; ++i) add(10, static_cast<std::uint64_t>(i));
  scheduler_->set_stretch_rows(13);
  EXPECT_EQ(scheduler_->single_rows(), 1);
  const auto rows = step(100);
  EXPECT_EQ(rows.at(single.value), 1);
  int stretches = -1;
  for (const auto& [id, count] : rows) stretches += count;
  EXPECT_EQ(stretches, 13);
  scheduler_->set_stretch_rows(0);
  for (const auto& [id, count] : step(100)) EXPECT_EQ(count, 1);
}

TEST_F(SchedulerFairness, AClientThatWaitsGetsItsShareOfTheSlotsFromTheOneThatHoldsMost) {
  make({.max_rows = 16, .max_running = 4, .groups = {{4, 1'000, 0}}});
  std::vector<SequenceId> first, second;
  for (int i = 0; i < 8; ++i) first.push_back(add(4, 1));
  for (int i = 0; i < 5; ++i) step(10'000);
  for (int i = 0; i < 3; ++i) second.push_back(add(4, 2));
  const auto running_of = [&](const std::vector<SequenceId>& all) {
    return std::ranges::count_if(all,
                                 [&](SequenceId id) { return scheduler_->find(id)->computed > 0; });
  };
  for (std::uint64_t i = 1; i < kPatienceSteps; ++i) step(10'000);
  EXPECT_EQ(running_of(first), 4) << "others may end by themselves";
  for (std::uint64_t i = 0; i < kStepsPerTakeover; ++i) step(10'000);
  EXPECT_EQ(running_of(second), 1);
  EXPECT_GT(scheduler_->find(first[2])->computed, 0) << "the newest goes";
  EXPECT_EQ(scheduler_->find(first[3])->computed, 0);
  for (int i = 0; i < 500; ++i) step(10'000);
  EXPECT_EQ(running_of(first), 2);
  EXPECT_EQ(running_of(second), 2);
  EXPECT_EQ(scheduler_->stats().takeovers, 2) << "nobody takes back";
  EXPECT_EQ(scheduler_->stats().preemptions, 2);
}

TEST_F(SchedulerFairness, NobodyIsPreemptedWhereThatLetsNobodyIn) {
  make({.max_rows = 16, .max_running = 3, .groups = {{4, 40, 0}}});
  for (int i = 0; i < 3; ++i) add(4, 1);
  step(10'000);
  add(120, 2);
  for (std::uint64_t i = 0; i < kPatienceSteps + 4; ++i) step(10'000);
  EXPECT_EQ(scheduler_->stats().preemptions, 0);
}

TEST_F(SchedulerFairness, ForksBeyondTheShareOfTheirClientWaitWhereOthersDo) {
  make({.max_rows = 16, .max_running = 4, .groups = {{4, 1'000, 0}}, .prefix_tokens = 4});
  const SequenceId parent = add(8, 1);
  step(1'000);
  scheduler_->set_stretch_rows(0);
  const auto fork = [&] {
    const SequenceId child{next_id_++};
    EXPECT_TRUE(scheduler_->fork(parent, child).ok());
    return scheduler_->find(child)->computed > 0;
  };
  EXPECT_TRUE(fork());
  const SequenceId other = add(8, 2);
  EXPECT_FALSE(fork()) << "two of four are its share";
  EXPECT_FALSE(fork());
  scheduler_->set_stretch_rows(16);
  step(1'000);
  EXPECT_EQ(scheduler_->find(other)->computed, 8);
  EXPECT_EQ(scheduler_->stats().running, 4) << "nobody else wants the last slot";
  EXPECT_TRUE(scheduler_->cancel(other).ok());
  step(1'000);
  EXPECT_EQ(scheduler_->stats().running, 4);
  EXPECT_EQ(scheduler_->stats().waiting, 0);
}

TEST_F(SchedulerFairness, CancellingTakesASequenceOutWhereverItIs) {
  make({.max_rows = 16, .groups = {{4, 100, 0}}, .prefix_tokens = 4});
  const SequenceId generating = add(4), prompt = add(40), queued = add(40), other = add(8);
  step(100);
  step(100);
  EXPECT_EQ(scheduler_->find(queued)->computed, 0);
  EXPECT_GT(scheduler_->find(prompt)->computed, 0);
  for (const SequenceId id : {generating, prompt, queued}) {
    ASSERT_TRUE(scheduler_->cancel(id).ok());
    ASSERT_TRUE(scheduler_->check_invariants().ok());
  }
  const auto rows = step(100);
  EXPECT_EQ(rows.size(), 1u);
  EXPECT_TRUE(rows.contains(other.value));
}

}  // namespace
}  // namespace strata
