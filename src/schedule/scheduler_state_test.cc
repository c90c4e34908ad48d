// Recurrent states in the scheduler: one block each, which cannot go back but by a copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/scheduler.h"

namespace strata {
namespace {

using testing::ElementsAre;

constexpr SequenceId kOne{1}, kTwo{2}, kThree{3};

Scheduler make_with_states(std::int32_t states) {
  return Scheduler::create({.groups = {{4, 20, 0}, {kEveryPosition, states, 0}}}).value();
}

void add(Scheduler& scheduler, SequenceId id, std::int32_t length) {
  NewSequence made;
  made.id = id;
  for (std::int32_t i = 0; i < length; ++i) made.tokens.push_back(i);
  ASSERT_TRUE(scheduler.add(std::move(made)).ok());
}

// What a step computed, by slice.
struct Taken {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::vector<std::uint8_t>> wants_logits;
  std::vector<BlockId> states;
  std::vector<BlockCopy> copies;
};

// Computes a step, keeps every row and appends 7 to each sequence.
Taken take_step(Scheduler& scheduler) {
  static constexpr TokenId kToken[] = {7};
  const StepPlan& plan = scheduler.plan_step();
  Taken taken;
  taken.copies = plan.copies;
  std::vector<Confirmed> confirmed;
  for (const SequenceSlice& slice : plan.slices) {
    taken.tokens.emplace_back(slice.tokens.begin(), slice.tokens.end());
    taken.wants_logits.push_back(slice.wants_logits);
    EXPECT_EQ(slice.block_tables[1].size(), 1u);
    taken.states.push_back(slice.block_tables[1].front());
    confirmed.push_back({slice.sequence, static_cast<Position>(slice.tokens.size()), kToken});
  }
  EXPECT_TRUE(scheduler.commit(confirmed).ok());
  const Status sound = scheduler.check_invariants();
  EXPECT_TRUE(sound.ok()) << sound.message();
  return taken;
}

std::int32_t used_states(const Scheduler& scheduler) { return scheduler.stats().used_blocks[1]; }

TEST(SchedulerStates, EverySequenceHoldsOneHoweverLong) {
  Scheduler scheduler = make_with_states(2);
  add(scheduler, kOne, 30);
  add(scheduler, kTwo, 3);
  add(scheduler, kThree, 3);
  EXPECT_THAT(take_step(scheduler).states, ElementsAre(BlockId{0}, BlockId{1}));
  EXPECT_EQ(scheduler.stats().waiting, 1);
  ASSERT_TRUE(scheduler.cancel(kTwo).ok());
  EXPECT_EQ(take_step(scheduler).tokens.size(), 2u);
}

TEST(SchedulerStates, AForkCopiesTheStateWhenItMovesOn) {
  Scheduler scheduler = make_with_states(3);
  add(scheduler, kOne, 4);
  take_step(scheduler);
  ASSERT_TRUE(scheduler.fork(kOne, kTwo, 9).ok());
  EXPECT_EQ(used_states(scheduler), 1);
  const Taken taken = take_step(scheduler);
  ASSERT_EQ(taken.copies.size(), 1u);
  EXPECT_EQ(taken.copies[0].group, 1);
  EXPECT_EQ(used_states(scheduler), 2);
}

TEST(SchedulerStates, RejectedDraftsBringTheStateBackAndKeptRowsAgain) {
  Scheduler scheduler = make_with_states(2);
  add(scheduler, kOne, 3);
  take_step(scheduler);
  const TokenId drafts[] = {20, 21, 22}, next[] = {30};
  ASSERT_TRUE(scheduler.extend(kOne, drafts).ok());
  const StepPlan& plan = scheduler.plan_step();
  ASSERT_EQ(plan.copies.size(), 1u);
  const BlockId before = plan.copies[0].from;
  const Confirmed confirmed[] = {{kOne, 2, next, false}};
  ASSERT_TRUE(scheduler.commit(confirmed).ok());
  EXPECT_THAT(scheduler.find(kOne)->tokens, ElementsAre(0, 1, 2, 7, 20, 30));
  EXPECT_EQ(scheduler.find(kOne)->computed, 3);
  EXPECT_EQ(used_states(scheduler), 1);
  const Taken again = take_step(scheduler);
  EXPECT_THAT(again.tokens[0], ElementsAre(7, 20, 30));
  EXPECT_THAT(again.wants_logits[0], ElementsAre(0, 0, 1));
  EXPECT_EQ(again.states[0], before);
}

TEST(SchedulerStates, ConfirmedDraftsNeedNoWayBack) {
  Scheduler scheduler = make_with_states(2);
  add(scheduler, kOne, 3);
  take_step(scheduler);
  const TokenId drafts[] = {20, 21};
  ASSERT_TRUE(scheduler.extend(kOne, drafts).ok());
  take_step(scheduler);
  EXPECT_EQ(scheduler.find(kOne)->computed, 6);
  EXPECT_EQ(used_states(scheduler), 1);
}

TEST(SchedulerStates, WithoutABlockForACopyDraftsAreDropped) {
  Scheduler scheduler = make_with_states(1);
  add(scheduler, kOne, 3);
  take_step(scheduler);
  const TokenId drafts[] = {20, 21};
  ASSERT_TRUE(scheduler.extend(kOne, drafts).ok());
  EXPECT_THAT(take_step(scheduler).tokens[0], ElementsAre(7));
}

TEST(SchedulerStates, RewindGoesOnFromTheLastCheckpointBefore) {
  Scheduler scheduler = make_with_states(4);
  EXPECT_FALSE(scheduler.checkpoint(kOne).ok());
  add(scheduler, kOne, 6);
  EXPECT_FALSE(scheduler.checkpoint(kOne).ok());
  take_step(scheduler);
  ASSERT_TRUE(scheduler.checkpoint(kOne).ok());
  EXPECT_EQ(used_states(scheduler), 1);
  for (int i = 0; i < 3; ++i) take_step(scheduler);
  EXPECT_EQ(used_states(scheduler), 2);
  const TokenId then[] = {40, 41};
  ASSERT_TRUE(scheduler.rewind(kOne, 8, then).ok());
  EXPECT_EQ(scheduler.find(kOne)->computed, 6);
  EXPECT_THAT(take_step(scheduler).tokens[0], ElementsAre(7, 7, 40, 41));
  ASSERT_TRUE(scheduler.rewind(kOne, 5, then).ok());
  EXPECT_EQ(scheduler.find(kOne)->computed, 0);
  EXPECT_THAT(take_step(scheduler).tokens[0], ElementsAre(0, 1, 2, 3, 4, 40, 41));
  EXPECT_FALSE(scheduler.rewind(kOne, 5, {}).ok());
  EXPECT_FALSE(scheduler.rewind(kOne, 99, then).ok());
  EXPECT_FALSE(scheduler.rewind(kOne, -1, then).ok());
}

TEST(SchedulerStates, AForkCanBranchOffAtACheckpoint) {
  Scheduler scheduler = make_with_states(4);
  add(scheduler, kOne, 6);
  take_step(scheduler);
  ASSERT_TRUE(scheduler.checkpoint(kOne).ok());
  take_step(scheduler);
  take_step(scheduler);
  ASSERT_TRUE(scheduler.fork(kOne, kTwo).ok());
  const TokenId then[] = {50};
  ASSERT_TRUE(scheduler.rewind(kTwo, 6, then).ok());
  EXPECT_EQ(scheduler.find(kTwo)->computed, 6);
  const Taken taken = take_step(scheduler);
  EXPECT_THAT(taken.tokens[1], ElementsAre(50));
  EXPECT_THAT(scheduler.find(kOne)->tokens, ElementsAre(0, 1, 2, 3, 4, 5, 7, 7, 7, 7));
}

TEST(SchedulerStates, CheckpointsYieldToSequences) {
  Scheduler scheduler = make_with_states(2);
  add(scheduler, kOne, 6);
  take_step(scheduler);
  ASSERT_TRUE(scheduler.checkpoint(kOne).ok());
  take_step(scheduler);
  EXPECT_EQ(used_states(scheduler), 2);
  add(scheduler, kTwo, 3);
  EXPECT_EQ(take_step(scheduler).tokens.size(), 2u);
  EXPECT_TRUE(scheduler.find(kOne)->checkpoints.empty());
  ASSERT_TRUE(scheduler.cancel(kOne).ok());
  ASSERT_TRUE(scheduler.cancel(kTwo).ok());
  EXPECT_EQ(used_states(scheduler), 0);
}

TEST(SchedulerStates, KeysAndValuesAloneGoBackToAnyPosition) {
  Scheduler scheduler = Scheduler::create({.groups = {{4, 20, 0}, {16, 4, 0}}}).value();
  add(scheduler, kOne, 9);
  take_step(scheduler);
  const TokenId then[] = {40};
  ASSERT_TRUE(scheduler.rewind(kOne, 5, then).ok());
  EXPECT_EQ(scheduler.find(kOne)->computed, 5);
  EXPECT_THAT(take_step(scheduler).tokens[0], ElementsAre(40));
}

}  // namespace
}  // namespace strata
