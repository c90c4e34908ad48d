// What sequences that begin alike share.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "schedule/scheduler.h"

namespace strata {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TokenId kGenerated = 7;

std::vector<TokenId> count_from(TokenId first, int length) {
  std::vector<TokenId> tokens(static_cast<std::size_t>(length));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<TokenId> joined(std::vector<TokenId> tokens, const std::vector<TokenId>& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

class SchedulerPrefix : public ::testing::Test {
 protected:
  void make(SchedulerConfig config) {
    config.prefix_tokens = 4;
    auto made = Scheduler::create(std::move(config));
    ASSERT_TRUE(made.ok()) << made.status().message();
    scheduler_ = std::make_unique<Scheduler>(std::move(made).value());
  }

  SequenceId add(std::vector<TokenId> tokens, std::string_view salt = "") {
    NewSequence sequence;
    sequence.id = SequenceId{next_id_++};
    sequence.tokens = std::move(tokens);
    sequence.cache_salt = salt;
    const SequenceId id = sequence.id;
    EXPECT_TRUE(scheduler_->add(std::move(sequence)).ok());
    return id;
  }

  // One step. A sequence goes on with kGenerated until it knows `length` tokens.
  std::int32_t step(int length = 1'000) {
    const StepPlan& plan = scheduler_->plan_step();
    const Status sound = scheduler_->check_invariants();
    EXPECT_TRUE(sound.ok()) << sound.message();
    copies_ += plan.copies.size();
    std::vector<Confirmed> confirmed;
    for (const SequenceSlice& slice : plan.slices) {
      const auto rows = static_cast<Position>(slice.tokens.size());
      const Sequence& sequence = *scheduler_->find(slice.sequence);
      const bool whole = slice.first + rows == sequence.known();
      const bool finished = whole && sequence.known() >= length;
      confirmed.push_back(
          {slice.sequence, rows,
           whole && !finished ? std::span(&kGenerated, 1) : std::span<const TokenId>(), finished});
    }
    const std::int32_t rows = plan.rows;
    EXPECT_TRUE(scheduler_->commit(confirmed).ok());
    const Status still = scheduler_->check_invariants();
    EXPECT_TRUE(still.ok()) << still.message();
    return rows;
  }

  // Computes all of a prompt and `generated` tokens, by itself; how many rows that took.
  int run(std::vector<TokenId> tokens, int generated = 0, std::string_view salt = "") {
    const int length = static_cast<int>(tokens.size()) + generated;
    const SequenceId id = add(std::move(tokens), salt);
    int rows = 0;
    while (scheduler_->find(id) != nullptr && rows < 10'000) rows += step(length);
    return rows;
  }

  std::int32_t cached_blocks(std::size_t group = 0) {
    return scheduler_->stats().cached_blocks[group];
  }

  std::unique_ptr<Scheduler> scheduler_;
  std::int64_t next_id_ = 0;
  std::size_t copies_ = 0;
};

TEST_F(SchedulerPrefix, NamesBlocksOfOneSizeOnly) {
  const auto refused = Scheduler::create({.groups = {{4, 9, 0}, {8, 9, 0}}, .prefix_tokens = 4});
  EXPECT_THAT(refused.status().message(), HasSubstr("blocks of 8"));
  EXPECT_FALSE(Scheduler::create({.groups = {}, .whole_sequences = true, .prefix_tokens = 4}).ok());
  EXPECT_TRUE(
      Scheduler::create({.groups = {{4, 9, 0}, {kEveryPosition, 9, 0}}, .prefix_tokens = 4}).ok());
}

TEST_F(SchedulerPrefix, ASecondTurnComputesWhatIsNewAndNoMoreThanABlock) {
  make({.groups = {{4, 100, 0}}});
  EXPECT_EQ(run(count_from(0, 30), 11), 41);
  const std::vector<TokenId> turn =
      joined(joined(count_from(0, 30), std::vector<TokenId>(11, kGenerated)), count_from(50, 9));
  EXPECT_EQ(run(turn), 10) << "40 of 41 tokens lie in full blocks";
  EXPECT_EQ(scheduler_->stats().prefix_queries, 30 + 50);
  EXPECT_EQ(scheduler_->stats().prefix_hits, 40);
}

TEST_F(SchedulerPrefix, TheLastTokenOfAKnownPromptIsComputed) {
  make({.groups = {{4, 100, 0}}});
  EXPECT_EQ(run(count_from(0, 12)), 12);
  EXPECT_EQ(run(count_from(0, 12)), 1);
  EXPECT_EQ(copies_, 0u) << "nobody else holds the block";
  EXPECT_EQ(cached_blocks(), 3) << "and it has its name again";
  EXPECT_EQ(run(count_from(0, 4)), 1);
}

TEST_F(SchedulerPrefix, ABlockThatOthersHoldIsCopiedBeforeItsLastTokenIsWritten) {
  make({.groups = {{4, 100, 0}}});
  const SequenceId first = add(count_from(0, 12));
  step();
  add(count_from(0, 12));
  EXPECT_EQ(step(), 2) << "a row of each";
  EXPECT_EQ(copies_, 1u);
  EXPECT_EQ(scheduler_->stats().used_blocks[0], 3 + 1)
      << "what it gave is shared again, and one block is for the first answer";
  ASSERT_TRUE(scheduler_->cancel(first).ok());
}

TEST_F(SchedulerPrefix, EqualPromptsInFlightAreComputedOnce) {
  make({.max_rows = 8, .groups = {{4, 100, 0}}});
  for (int i = 0; i < 3; ++i) add(joined(count_from(0, 40), {TokenId{100 + i}}));
  int rows = 0, steps = 0;
  while (!scheduler_->stats().running || scheduler_->single_rows() < 3) {
    rows += step();
    ASSERT_LT(++steps, 20);
  }
  EXPECT_LE(rows, 41 + 2 + steps) << "40 shared rows, one of each, and what was generated";
  EXPECT_EQ(scheduler_->stats().used_blocks[0], 10 + 3);
  EXPECT_EQ(scheduler_->stats().prefix_hits, 80);
}

TEST_F(SchedulerPrefix, AFailedStepSharesNothing) {
  make({.max_rows = 8, .groups = {{4, 100, 0}}});
  const SequenceId first = add(count_from(0, 9)), second = add(count_from(0, 9));
  EXPECT_EQ(scheduler_->plan_step().slices.size(), 1u) << "the second waits for the first's rows";
  ASSERT_TRUE(scheduler_->commit({}).ok());
  ASSERT_TRUE(scheduler_->cancel(first).ok());
  EXPECT_EQ(cached_blocks(), 0);
  EXPECT_EQ(step(), 8);
  EXPECT_EQ(scheduler_->find(second)->cached, 0);
}

TEST_F(SchedulerPrefix, DifferentSaltsShareNothing) {
  make({.groups = {{4, 100, 0}}});
  EXPECT_EQ(run(count_from(0, 12), 0, "mine"), 12);
  EXPECT_EQ(run(count_from(0, 12), 0, "yours"), 12);
  EXPECT_EQ(run(count_from(0, 12)), 12);
  EXPECT_EQ(run(count_from(0, 12), 0, "mine"), 1);
}

TEST_F(SchedulerPrefix, RowsWhoseLogitsAreWantedAreComputed) {
  make({.groups = {{4, 100, 0}}});
  run(count_from(0, 20));
  NewSequence sequence;
  sequence.id = SequenceId{99};
  sequence.tokens = count_from(0, 20);
  sequence.logit_positions = {10, 13};
  ASSERT_TRUE(scheduler_->add(std::move(sequence)).ok());
  const StepPlan& plan = scheduler_->plan_step();
  EXPECT_EQ(plan.slices[0].first, 10);
  EXPECT_EQ(plan.logit_rows, 3);
}

TEST_F(SchedulerPrefix, NamesTheFirstTokenThatDiffers) {
  make({.groups = {{4, 100, 0}}});
  const auto difference = [&](const std::vector<TokenId>& tokens) {
    const SequenceId id = add(tokens);
    scheduler_->plan_step();
    const Position position = scheduler_->find(id)->first_difference;
    EXPECT_TRUE(scheduler_->commit({}).ok());
    EXPECT_TRUE(scheduler_->cancel(id).ok());
    return position;
  };
  EXPECT_EQ(difference(count_from(0, 12)), -1) << "nothing is cached";
  run(count_from(0, 12));
  EXPECT_EQ(difference(joined(count_from(0, 6), {99, 98})), 6);
  EXPECT_EQ(difference(joined(count_from(0, 8), {99})), 8);
  EXPECT_EQ(difference({99, 1, 2}), 0);
  EXPECT_EQ(difference(count_from(0, 12)), -1);
  EXPECT_EQ(difference(count_from(0, 15)), -1) << "it goes on where the cached one ends";
  run(joined(count_from(0, 5), {97, 96, 95}));
  EXPECT_EQ(difference(joined(count_from(0, 6), {99, 98})), 6) << "the most alike one counts";
  const auto with_logits = [&](std::vector<TokenId> tokens) {
    NewSequence sequence{SequenceId{900}, std::move(tokens), {0, 1, 2}};
    EXPECT_TRUE(scheduler_->add(std::move(sequence)).ok());
    scheduler_->plan_step();
    const Position position = scheduler_->find(SequenceId{900})->first_difference;
    EXPECT_TRUE(scheduler_->commit({}).ok());
    EXPECT_TRUE(scheduler_->cancel(SequenceId{900}).ok());
    return position;
  };
  EXPECT_EQ(with_logits(count_from(0, 12)), -1) << "also where no row may come from the cache";
  EXPECT_EQ(with_logits(joined(count_from(0, 6), {99, 98})), 6);
}

TEST_F(SchedulerPrefix, APromptThatFillsTheCacheComesAgain) {
  make({.groups = {{4, 3, 0}}});
  const std::vector<TokenId> whole = count_from(0, 12);
  for (int i = 0; i < 2; ++i) {
    const SequenceId id = add(whole);
    step(12);
    EXPECT_EQ(scheduler_->find(id), nullptr) << "its last block is cached and need not be copied";
  }
}

TEST_F(SchedulerPrefix, LeavesAreEvictedFirstAndThoseLongestUnused) {
  make({.groups = {{4, 10, 0}}});
  run(count_from(0, 16));    // four blocks
  run(count_from(100, 16));  // four more
  run(joined(count_from(0, 8), {50}));
  EXPECT_EQ(cached_blocks(), 8);
  run(count_from(200, 20));  // needs five and finds two free
  EXPECT_EQ(scheduler_->stats().prefix_evictions, 3);
  EXPECT_EQ(run(count_from(100, 12)), 1) << "lost its leaf alone";
  EXPECT_EQ(run(count_from(0, 8)), 1) << "lost the leaves that were not used since";
  EXPECT_EQ(scheduler_->stats().preemptions, 0);
}

TEST_F(SchedulerPrefix, NobodyIsPreemptedWhileThereAreBlocksToEvict) {
  make({.groups = {{4, 12, 0}}});
  for (int i = 0; i < 3; ++i) run(count_from(100 * i, 15));
  EXPECT_EQ(cached_blocks(), 9);
  add(count_from(500, 20));
  for (int i = 0; i < 27; ++i) step();
  EXPECT_EQ(scheduler_->stats().preemptions, 0);
  EXPECT_EQ(cached_blocks(), 0);
}

TEST_F(SchedulerPrefix, APreemptedSequenceGoesOnBehindWhatIsStillThere) {
  make({.groups = {{4, 100, 0}}});
  const SequenceId id = add(count_from(0, 18));
  for (int i = 0; i < 4; ++i) step();
  ASSERT_TRUE(scheduler_->force_preempt(id).ok());
  EXPECT_EQ(step(), 22 - 20);
  EXPECT_EQ(scheduler_->stats().prefix_queries, 18) << "counted once";
}

TEST_F(SchedulerPrefix, AForkedChildSharesItsOwnTokensOnly) {
  make({.groups = {{4, 100, 0}}});
  const SequenceId parent = add(count_from(0, 7));
  step();
  ASSERT_TRUE(scheduler_->fork(parent, SequenceId{99}, TokenId{55}).ok());
  step(9);
  step(9);
  EXPECT_EQ(run(joined(count_from(0, 7), {55, kGenerated})), 1);
  EXPECT_EQ(run(joined(count_from(0, 7), {kGenerated, kGenerated})), 1);
  EXPECT_EQ(run(joined(count_from(0, 7), {56, kGenerated})), 5);
}

TEST_F(SchedulerPrefix, AWindowIsServedWhereAllItSeesIsThere) {
  make({.groups = {{4, 40, 0}, {4, 10, 8}}});
  run(count_from(0, 32), 1);
  EXPECT_EQ(run(joined(count_from(0, 32), {99})), 1);
  EXPECT_EQ(cached_blocks(1), 8);
  // Five more blocks: of the ten two are free, and the first three of the windows go.
  run(count_from(100, 20));
  EXPECT_EQ(scheduler_->stats().prefix_evictions, 3);
  EXPECT_EQ(run(joined(count_from(0, 32), {98})), 1) << "the last window is there";
  EXPECT_EQ(run(joined(count_from(0, 12), {98})), 13) << "an early one is not";
}

TEST_F(SchedulerPrefix, StatesServeThePromptsEndAndTheLastBlockOfTheAnswer) {
  make({.groups = {{4, 100, 0}, {kEveryPosition, 6, 0}}});
  EXPECT_EQ(run(count_from(0, 18), 11), 29);
  EXPECT_EQ(cached_blocks(1), 2);
  const std::vector<TokenId> answered =
      joined(count_from(0, 18), std::vector<TokenId>(11, kGenerated));
  EXPECT_EQ(run(joined(answered, {99})), 30 - 28);
  EXPECT_EQ(run(joined(count_from(0, 18), {99})), 19 - 16);
  EXPECT_EQ(run(joined(count_from(0, 14), {99})), 15) << "no state was saved there";
}

TEST_F(SchedulerPrefix, StatesWithinAPromptServeThoseThatBeginLikeIt) {
  make({.groups = {{4, 100, 0}, {kEveryPosition, 6, 0}}, .state_tokens = 8});
  EXPECT_EQ(run(count_from(0, 30)), 30);
  EXPECT_EQ(cached_blocks(1), 4) << "at 8, 16, 24 and the end, 28";
  EXPECT_EQ(run(joined(count_from(0, 22), {99})), 23 - 16);
  EXPECT_EQ(run(joined(count_from(0, 7), {99})), 8);
  EXPECT_EQ(run(joined(count_from(0, 30), {99})), 31 - 28);
}

TEST_F(SchedulerPrefix, ALongPromptTakesNoPlaceOfTheTurnsOfOthers) {
  make({.groups = {{4, 1'000, 0}, {kEveryPosition, 12, 0}}, .state_tokens = 8});
  const auto turn = [](int client) {
    return joined(count_from(100 * client, 9), std::vector<TokenId>(8, kGenerated));
  };
  for (int client = 0; client < 4; ++client) run(count_from(100 * client, 9), 8);
  EXPECT_EQ(cached_blocks(1), 8) << "ends of four prompts and answers";
  const std::vector<TokenId> cold = count_from(1'000, 400);
  EXPECT_EQ(run(cold), 400);
  EXPECT_EQ(scheduler_->stats().preemptions, 0);
  EXPECT_EQ(run(joined(cold, {99})), 1) << "its own end is there";
  for (int client = 0; client < 4; ++client) EXPECT_EQ(run(turn(client)), 1) << client;
}

TEST_F(SchedulerPrefix, AStateWithinAPromptThatServedOnceStaysAsTheOthersDo) {
  make({.groups = {{4, 1'000, 0}, {kEveryPosition, 6, 0}}, .state_tokens = 8});
  run(count_from(0, 30));
  EXPECT_EQ(run(joined(count_from(0, 8), {98, 97})), 2) << "from the state at 8";
  run(count_from(1'000, 400));
  EXPECT_EQ(run(joined(count_from(0, 8), {96})), 1);
}

TEST_F(SchedulerPrefix, StatesAreSavedInBlocksThatNobodyNeeds) {
  make({.groups = {{kEveryPosition, 3, 0}}});
  for (int i = 0; i < 6; ++i) run(count_from(100 * i, 9), 8);
  EXPECT_LE(cached_blocks(), 3);
  EXPECT_EQ(run(joined(count_from(500, 9), std::vector<TokenId>(8, kGenerated))), 1);
  for (int i = 0; i < 3; ++i) add(count_from(1'000 * i, 5));
  step();
  step();
  EXPECT_EQ(scheduler_->stats().running, 3);
  EXPECT_EQ(scheduler_->stats().preemptions, 0);
}

}  // namespace
}  // namespace strata
