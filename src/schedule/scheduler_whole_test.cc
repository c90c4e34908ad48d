// Sequences that a step computes whole or not at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/scheduler.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Scheduler make_whole(std::int32_t blocks = 100) {
  return Scheduler::create({.max_rows = 10,
                            .max_logit_rows = 4,
                            .groups = {{4, blocks, 0}},
                            .whole_sequences = true})
      .value();
}

Status add(Scheduler& scheduler, std::int64_t id, Position length, Position logit_rows = 1) {
  NewSequence made;
  made.id = SequenceId{id};
  made.tokens.assign(static_cast<std::size_t>(length), 7);
  for (Position p = length - logit_rows; p < length; ++p) made.logit_positions.push_back(p);
  made.final_logits = false;
  return scheduler.add(std::move(made));
}

// The lengths of a step's slices, all of which are then finished.
std::vector<std::size_t> lengths_of_step(Scheduler& scheduler) {
  std::vector<std::size_t> lengths;
  std::vector<Confirmed> confirmed;
  for (const SequenceSlice& slice : scheduler.plan_step().slices) {
    EXPECT_EQ(slice.first, 0);
    lengths.push_back(slice.tokens.size());
    confirmed.push_back({slice.sequence, static_cast<Position>(lengths.back()), {}, true});
  }
  EXPECT_TRUE(scheduler.commit(confirmed).ok());
  EXPECT_TRUE(scheduler.check_invariants().ok());
  return lengths;
}

TEST(WholeSequences, WaitRatherThanBeCut) {
  Scheduler scheduler = make_whole();
  for (const Position length : {6, 4, 3, 10, 2}) ASSERT_TRUE(add(scheduler, length, length).ok());
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(6, 4));
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(3));
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(10));
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(2));
  EXPECT_THAT(lengths_of_step(scheduler), IsEmpty());
}

TEST(WholeSequences, WaitForLogitRowsAndBlocksToo) {
  Scheduler scheduler = make_whole(3);
  ASSERT_TRUE(add(scheduler, 1, 3, 3).ok());
  ASSERT_TRUE(add(scheduler, 2, 2, 2).ok());
  ASSERT_TRUE(add(scheduler, 3, 8, 1).ok());
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(3));
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(2, 8));
  ASSERT_TRUE(add(scheduler, 4, 4, 1).ok());
  ASSERT_TRUE(add(scheduler, 5, 5, 1).ok());
  ASSERT_TRUE(add(scheduler, 6, 1, 1).ok());
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(4, 5));  // of four blocks there are three
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(1));
}

TEST(WholeSequences, NoChunkSizeCutsThem) {
  Scheduler scheduler = make_whole();
  scheduler.set_max_chunk(2);
  ASSERT_TRUE(add(scheduler, 1, 9).ok());
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(9));
}

TEST(WholeSequences, ThoseNoStepCanHoldAreRefusedWithNumbers) {
  Scheduler scheduler = make_whole();
  const Status too_long = add(scheduler, 1, 11);
  EXPECT_EQ(too_long.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(too_long.message(), ::testing::AllOf(::testing::HasSubstr("11 tokens"),
                                                   ::testing::HasSubstr("holds 10")));
  EXPECT_THAT(add(scheduler, 1, 9, 5).message(), ::testing::HasSubstr("5 rows of output"));
}

TEST(WholeSequences, AFailedStepIsComputedAgainAndNothingIsAppended) {
  static constexpr TokenId kToken[] = {7};
  Scheduler scheduler = make_whole();
  ASSERT_TRUE(add(scheduler, 1, 5).ok());
  (void)scheduler.plan_step();
  const Confirmed more{SequenceId{1}, 5, kToken, false};
  EXPECT_FALSE(scheduler.commit({&more, 1}).ok());
  ASSERT_TRUE(scheduler.commit({}).ok());
  EXPECT_THAT(lengths_of_step(scheduler), ElementsAre(5));
}

}  // namespace
}  // namespace strata
