#include "schedule/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace strata {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Scheduler make(SchedulerConfig config) { return Scheduler::create(std::move(config)).value(); }

NewSequence sequence(std::int64_t id, int length, std::int32_t priority = 0) {
  NewSequence made;
  made.id = SequenceId{id};
  for (int i = 0; i < length; ++i) made.tokens.push_back(i);
  made.priority = priority;
  return made;
}

// Confirms every slice; a token 7 follows where the sequence's rows are all computed.
void confirm_all(Scheduler& scheduler, const StepPlan& plan) {
  static constexpr TokenId kToken[] = {7};
  std::vector<Confirmed> confirmed;
  for (const SequenceSlice& slice : plan.slices) {
    const auto rows = static_cast<Position>(slice.tokens.size());
    const bool whole = slice.first + rows == scheduler.find(slice.sequence)->known();
    confirmed.push_back({slice.sequence, rows,
                         whole ? std::span<const TokenId>(kToken) : std::span<const TokenId>()});
  }
  ASSERT_TRUE(scheduler.commit(confirmed).ok());
  const Status sound = scheduler.check_invariants();
  ASSERT_TRUE(sound.ok()) << sound.message();
}

std::vector<std::int64_t> planned(const StepPlan& plan) {
  std::vector<std::int64_t> ids;
  for (const SequenceSlice& slice : plan.slices) ids.push_back(slice.sequence.value);
  return ids;
}

TEST(Scheduler, RefusesSettingsThatCannotWork) {
  EXPECT_FALSE(Scheduler::create({.max_rows = 0, .groups = {}}).ok());
  EXPECT_FALSE(Scheduler::create({.groups = {{0, 4, 0}}}).ok());
  EXPECT_FALSE(Scheduler::create({.groups = {{4, 0, 0}}}).ok());
  EXPECT_FALSE(Scheduler::create({.groups = {{4, 4, -1}}}).ok());
  EXPECT_FALSE(Scheduler::create({.groups = {}, .prefix_tokens = 4, .state_tokens = 6}).ok());
  EXPECT_FALSE(Scheduler::create({.groups = {}, .state_tokens = 4}).ok());
}

TEST(Scheduler, RefusesWhatNeverFitsAndSaysTheNumbers) {
  Scheduler scheduler = make({.groups = {{4, 3, 0}}});
  const Status refused = scheduler.add(sequence(1, 13));
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("need 4 cache blocks"));
  EXPECT_THAT(refused.message(), HasSubstr("only 3"));
  EXPECT_TRUE(scheduler.add(sequence(2, 12)).ok());
}

TEST(Scheduler, LongSequenceFitsAWindowedPool) {
  Scheduler scheduler = make({.max_rows = 8, .groups = {{4, 3, 8}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 100)).ok());
  int steps = 0;
  for (; scheduler.find(SequenceId{1})->known() == 100; ++steps) {
    ASSERT_LT(steps, 100);
    confirm_all(scheduler, scheduler.plan_step());
  }
  EXPECT_GE(steps, 100 / 8);
  EXPECT_FALSE(make({.groups = {{4, 2, 8}}}).add(sequence(1, 100)).ok());
}

TEST(Scheduler, RefusesHostileSequences) {
  Scheduler scheduler = make({.groups = {{4, 10, 0}}});
  EXPECT_FALSE(scheduler.add(sequence(1, 0)).ok());
  EXPECT_FALSE(scheduler.add(sequence(-1, 3)).ok());
  for (const std::vector<Position>& positions : {std::vector<Position>{3}, {-1}, {1, 1}, {2, 0}}) {
    NewSequence bad = sequence(1, 3);
    bad.logit_positions = positions;
    EXPECT_FALSE(scheduler.add(std::move(bad)).ok());
  }
  ASSERT_TRUE(scheduler.add(sequence(1, 3)).ok());
  EXPECT_FALSE(scheduler.add(sequence(1, 3)).ok());
  EXPECT_FALSE(scheduler.fork(SequenceId{9}, SequenceId{10}).ok());
  EXPECT_FALSE(scheduler.fork(SequenceId{1}, SequenceId{1}).ok());
  EXPECT_FALSE(scheduler.cancel(SequenceId{9}).ok());
  EXPECT_FALSE(scheduler.force_preempt(SequenceId{1}).ok()) << "it waits";
}

TEST(Scheduler, NextTokensGoBeforePromptsAndPromptsAreCut) {
  Scheduler scheduler = make({.max_rows = 6, .groups = {{4, 50, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 20)).ok());
  ASSERT_TRUE(scheduler.add(sequence(2, 2)).ok());
  EXPECT_THAT(planned(scheduler.plan_step()), ElementsAre(1));
  for (int i = 0; i < 3; ++i) confirm_all(scheduler, scheduler.plan_step());
  const StepPlan& plan = scheduler.plan_step();
  EXPECT_THAT(planned(plan), ElementsAre(1, 2));
  confirm_all(scheduler, plan);
  const StepPlan& next = scheduler.plan_step();
  EXPECT_EQ(next.rows, 2);
  EXPECT_EQ(next.logit_rows, 2);
}

TEST(Scheduler, HigherPriorityIsAdmittedFirst) {
  Scheduler scheduler = make({.max_running = 1, .groups = {{4, 50, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 3)).ok());
  ASSERT_TRUE(scheduler.add(sequence(2, 3, 5)).ok());
  EXPECT_THAT(planned(scheduler.plan_step()), ElementsAre(2));
}

TEST(Scheduler, DeliversAskedLogitsOnceAcrossPreemption) {
  Scheduler scheduler = make({.groups = {{4, 50, 0}}});
  NewSequence asks = sequence(1, 5);
  asks.logit_positions = {1, 3};
  ASSERT_TRUE(scheduler.add(std::move(asks)).ok());
  const StepPlan& plan = scheduler.plan_step();
  EXPECT_THAT(plan.slices[0].wants_logits, ElementsAre(0, 1, 0, 1, 1));
  confirm_all(scheduler, plan);
  ASSERT_TRUE(scheduler.force_preempt(SequenceId{1}).ok());
  EXPECT_EQ(scheduler.find(SequenceId{1})->known(), 6);
  EXPECT_THAT(scheduler.plan_step().slices[0].wants_logits, ElementsAre(0, 0, 0, 0, 0, 1));
}

TEST(Scheduler, NoFinalLogitsWhereNoneAreWanted) {
  Scheduler scheduler = make({.groups = {{4, 50, 0}}});
  NewSequence scored = sequence(1, 3);
  scored.final_logits = false;
  ASSERT_TRUE(scheduler.add(std::move(scored)).ok());
  EXPECT_EQ(scheduler.plan_step().logit_rows, 0);
  const Confirmed unfinished[] = {{SequenceId{1}, 3, {}, false}};
  EXPECT_FALSE(scheduler.commit(unfinished).ok()) << "nothing would be left to compute";
  const Confirmed done[] = {{SequenceId{1}, 3, {}, true}};
  EXPECT_TRUE(scheduler.commit(done).ok());
  EXPECT_TRUE(scheduler.plan_step().empty());
}

TEST(Scheduler, ForkSharesBlocksAndCopiesOnlyForTheFirstWriter) {
  Scheduler scheduler = make({.groups = {{4, 10, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 6)).ok());
  confirm_all(scheduler, scheduler.plan_step());
  ASSERT_TRUE(scheduler.fork(SequenceId{1}, SequenceId{2}, 99).ok());
  EXPECT_THAT(scheduler.stats().used_blocks, ElementsAre(2)) << "shared, not doubled";
  EXPECT_EQ(scheduler.find(SequenceId{2})->tokens.back(), 99);
  const StepPlan& plan = scheduler.plan_step();
  ASSERT_EQ(plan.copies.size(), 1u);
  ASSERT_EQ(plan.slices.size(), 2u);
  EXPECT_EQ(plan.slices[0].block_tables[0][0], plan.slices[1].block_tables[0][0]);
  EXPECT_NE(plan.slices[0].block_tables[0][1], plan.slices[1].block_tables[0][1]);
  confirm_all(scheduler, plan);
  EXPECT_TRUE(scheduler.plan_step().copies.empty());
}

TEST(Scheduler, WindowFreesBlocksThatNoRowSees) {
  Scheduler scheduler = make({.groups = {{4, 10, 0}, {4, 10, 5}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 12)).ok());
  confirm_all(scheduler, scheduler.plan_step());
  // The next row, 12, sees positions 8 to 12 of the window: of three blocks, the last.
  EXPECT_THAT(scheduler.stats().used_blocks, ElementsAre(3, 1));
  const StepPlan& plan = scheduler.plan_step();
  EXPECT_FALSE(plan.slices[0].block_tables[1][1].valid());
  EXPECT_TRUE(plan.slices[0].block_tables[1][2].valid());
}

TEST(Scheduler, LastAdmittedOfLowestPriorityIsPreempted) {
  Scheduler scheduler = make({.groups = {{1, 10, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 3, 1)).ok());
  ASSERT_TRUE(scheduler.add(sequence(2, 3, 0)).ok());
  ASSERT_TRUE(scheduler.add(sequence(3, 3, 1)).ok());
  confirm_all(scheduler, scheduler.plan_step());  // nine blocks in use
  const StepPlan& plan = scheduler.plan_step();   // one free: 1 takes it, 3 takes from 2
  EXPECT_THAT(planned(plan), ElementsAre(1, 3));
  EXPECT_EQ(scheduler.stats().preemptions, 1);
  EXPECT_EQ(scheduler.find(SequenceId{2})->computed, 0);
  EXPECT_EQ(scheduler.find(SequenceId{2})->known(), 4);
}

TEST(Scheduler, EndsASequenceThatOutgrowsTheCache) {
  Scheduler scheduler = make({.groups = {{2, 2, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 4)).ok());
  confirm_all(scheduler, scheduler.plan_step());
  EXPECT_TRUE(scheduler.plan_step().empty());
  const std::vector<Ended> ended = scheduler.take_ended();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(ended[0].status.message(), HasSubstr("need 3 cache blocks"));
  EXPECT_EQ(scheduler.find(SequenceId{1}), nullptr);
}

TEST(Scheduler, KeepsConfirmedDraftsAndTakesBackTheOthers) {
  Scheduler scheduler = make({.groups = {{2, 20, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 3)).ok());
  confirm_all(scheduler, scheduler.plan_step());
  EXPECT_THAT(scheduler.runnable(), ElementsAre(SequenceId{1}));
  const TokenId drafts[] = {20, 21, 22};
  ASSERT_TRUE(scheduler.extend(SequenceId{1}, drafts).ok());
  const StepPlan& plan = scheduler.plan_step();
  EXPECT_THAT(plan.slices[0].tokens, ElementsAre(7, 20, 21, 22));
  EXPECT_EQ(plan.logit_rows, 4);
  const TokenId next[] = {30};
  const Confirmed confirmed[] = {{SequenceId{1}, 2, next, false}};
  ASSERT_TRUE(scheduler.commit(confirmed).ok());
  EXPECT_THAT(scheduler.find(SequenceId{1})->tokens, ElementsAre(0, 1, 2, 7, 20, 30));
  EXPECT_EQ(scheduler.find(SequenceId{1})->computed, 5);
  EXPECT_TRUE(scheduler.check_invariants().ok());
}

TEST(Scheduler, LeavesOutSequencesThatAreHeld) {
  Scheduler scheduler = make({.groups = {{2, 20, 0}}});
  for (const int id : {1, 2}) ASSERT_TRUE(scheduler.add(sequence(id, 3)).ok());
  EXPECT_FALSE(scheduler.hold(SequenceId{3}, true).ok()) << "there is none";
  confirm_all(scheduler, scheduler.plan_step());
  ASSERT_TRUE(scheduler.hold(SequenceId{1}, true).ok());
  EXPECT_EQ(scheduler.single_rows(), 1);
  for (int step = 0; step < 2; ++step) {
    const StepPlan& plan = scheduler.plan_step();
    ASSERT_EQ(plan.slices.size(), 1u);
    EXPECT_EQ(plan.slices[0].sequence, SequenceId{2});
    confirm_all(scheduler, plan);
  }
  ASSERT_TRUE(scheduler.hold(SequenceId{1}, false).ok());
  EXPECT_EQ(scheduler.plan_step().slices.size(), 2u);
  confirm_all(scheduler, scheduler.plan_step());
  ASSERT_TRUE(scheduler.hold(SequenceId{1}, true).ok());
  ASSERT_TRUE(scheduler.force_preempt(SequenceId{1}).ok());
  const StepPlan& plan = scheduler.plan_step();
  ASSERT_EQ(plan.slices.size(), 2u) << "preempted, it comes back, all but its last row";
  const Sequence& held = *scheduler.find(SequenceId{1});
  EXPECT_EQ(plan.slices[1].sequence, SequenceId{1});
  EXPECT_EQ(static_cast<Position>(plan.slices[1].tokens.size()), held.firm() - 1);
  confirm_all(scheduler, plan);
  EXPECT_TRUE(scheduler.runs(SequenceId{1}));
  EXPECT_EQ(scheduler.plan_step().slices.size(), 1u);
}

TEST(Scheduler, ASequenceHeldAtItsOnlyRowGetsItsSlot) {
  Scheduler scheduler = make({.groups = {{2, 20, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 1)).ok());
  ASSERT_TRUE(scheduler.hold(SequenceId{1}, true).ok());
  EXPECT_FALSE(scheduler.runs(SequenceId{1}));
  EXPECT_TRUE(scheduler.plan_step().empty());
  EXPECT_TRUE(scheduler.runs(SequenceId{1}));
  EXPECT_TRUE(scheduler.plan_step().empty());
  ASSERT_TRUE(scheduler.hold(SequenceId{1}, false).ok());
  EXPECT_EQ(scheduler.plan_step().slices.size(), 1u);
}

TEST(Scheduler, DropsDraftsThatDoNotFitTheStep) {
  Scheduler scheduler = make({.max_rows = 3, .groups = {{2, 20, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 3)).ok());
  confirm_all(scheduler, scheduler.plan_step());
  const TokenId drafts[] = {20, 21, 22, 23};
  ASSERT_TRUE(scheduler.extend(SequenceId{1}, drafts).ok());
  EXPECT_THAT(scheduler.plan_step().slices[0].tokens, ElementsAre(7, 20, 21));
  EXPECT_THAT(scheduler.find(SequenceId{1})->tokens, ElementsAre(0, 1, 2, 7, 20, 21));
}

TEST(Scheduler, CommitThatWouldLoseTokensChangesNothing) {
  Scheduler scheduler = make({.max_rows = 4, .groups = {{2, 20, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 9)).ok());
  ASSERT_EQ(scheduler.plan_step().rows, 4);
  const TokenId next[] = {30};
  for (const Confirmed& wrong :
       {Confirmed{SequenceId{1}, 3, {}, false}, Confirmed{SequenceId{1}, 4, next, false},
        Confirmed{SequenceId{1}, 5, {}, false}, Confirmed{SequenceId{1}, 0, {}, false},
        Confirmed{SequenceId{2}, 4, {}, false}}) {
    EXPECT_FALSE(scheduler.commit(std::span(&wrong, 1)).ok());
  }
  const Confirmed twice[] = {{SequenceId{1}, 4, {}, false}, {SequenceId{1}, 4, {}, false}};
  EXPECT_FALSE(scheduler.commit(twice).ok());
  EXPECT_FALSE(scheduler.cancel(SequenceId{1}).ok()) << "a step is under way";
  ASSERT_TRUE(scheduler.commit(std::span(twice, 1)).ok());
  EXPECT_EQ(scheduler.find(SequenceId{1})->computed, 4);
}

TEST(Scheduler, FailedStepIsRecomputed) {
  Scheduler scheduler = make({.groups = {{2, 20, 0}}});
  ASSERT_TRUE(scheduler.add(sequence(1, 5)).ok());
  ASSERT_EQ(scheduler.plan_step().rows, 5);
  ASSERT_TRUE(scheduler.commit({}).ok());
  EXPECT_EQ(scheduler.plan_step().rows, 5);
}

TEST(Scheduler, WorksWithoutCacheGroups) {
  Scheduler scheduler = make({.max_rows = 3, .groups = {}});
  ASSERT_TRUE(scheduler.add(sequence(1, 5)).ok());
  confirm_all(scheduler, scheduler.plan_step());
  EXPECT_EQ(scheduler.plan_step().rows, 2);
}

TEST(BlockPool, HandsOutEachBlockOnceInAFixedOrder) {
  BlockPool pool(3);
  EXPECT_EQ(pool.allocate()->value, 0);
  EXPECT_EQ(pool.allocate()->value, 1);
  pool.add_reference(BlockId{0});
  pool.release(BlockId{0});
  EXPECT_EQ(pool.free_blocks(), 1);
  pool.release(BlockId{0});
  EXPECT_EQ(pool.allocate()->value, 0);
  EXPECT_EQ(pool.allocate()->value, 2);
  EXPECT_FALSE(pool.allocate().has_value());
  EXPECT_TRUE(pool.check(std::vector<std::int32_t>{1, 1, 1}).ok());
  EXPECT_FALSE(pool.check(std::vector<std::int32_t>{1, 2, 1}).ok());
  EXPECT_FALSE(pool.check(std::vector<std::int32_t>{1, 1, 0}).ok());
}

}  // namespace
}  // namespace strata
