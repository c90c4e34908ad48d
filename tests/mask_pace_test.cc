#include "engine/mask_pace.h"

#include <gtest/gtest.h>

#include <map>

namespace strata {
namespace {

// Answers whose every mask takes so many seconds of a clock that nothing else moves.
class Masks {
 public:
  std::int64_t add(double seconds) {
    const auto id = static_cast<std::int64_t>(answers_.size());
    answers_.emplace(id, Answer(*this, seconds));
    return id;
  }
  // A step: what its masks took.
  double step(std::optional<double> seconds) {
    std::vector<MaskPace::Late> late;
    for (auto& [id, answer] : answers_) late.push_back({SequenceId{id}, &answer, &answer.cost});
    const double before = now_;
    pace_.make(late, seconds);
    waiting_ = late.size();
    return now_ - before;
  }
  int made(std::int64_t id) const { return answers_.at(id).made; }
  std::size_t waiting() const { return waiting_; }

 private:
  struct Answer : Constraint {
    Answer(Masks& masks, double seconds) : of(&masks), takes(seconds) {}
    Result<std::span<const std::uint64_t>> allowed() override {
      of->now_ += takes;
      ++made;
      return std::span<const std::uint64_t>();
    }
    bool ready() const override { return false; }
    void advance(TokenId /*token*/) override {}
    std::unique_ptr<Constraint> clone() const override { return nullptr; }

    Masks* of;
    double takes;
    MaskCost cost;
    int made = 0;
  };

  double now_ = 0;
  std::size_t waiting_ = 0;
  std::map<std::int64_t, Answer> answers_;
  MaskPace pace_{[this] { return now_; }};
};

TEST(MaskPace, ManyDearMasksTakeAShareOfTheTime) {
  Masks masks;
  for (int i = 0; i < 32; ++i) masks.add(0.009);
  double taken = 0, longest = 0;
  constexpr int kSteps = 1000;
  for (int i = 0; i < kSteps; ++i) {
    const double seconds = masks.step(0.040);
    taken += seconds;
    longest = std::max(longest, seconds);
  }
  EXPECT_NEAR(taken / (kSteps * 0.040), 0.25, 0.02);
  EXPECT_LT(longest, 0.010 + 0.009);
  for (int i = 0; i < 32; ++i) EXPECT_NEAR(masks.made(i), kSteps * 0.010 / 0.009 / 32, 2) << i;
}

TEST(MaskPace, CheapMasksAreMadeForEveryStep) {
  Masks masks;
  for (int i = 0; i < 31; ++i) masks.add(0.009);
  for (int i = 0; i < 500; ++i) masks.step(0.005);
  const std::int64_t cheap = masks.add(3e-5);
  for (int i = 0; i < 500; ++i) masks.step(0.005);
  // The first one may wait, as it is not known yet how cheap they are.
  EXPECT_GE(masks.made(cheap), 480);
  for (int i = 0; i < 31; ++i) EXPECT_GE(masks.made(i), 3) << "none waits for ever";
}

TEST(MaskPace, WithNobodyWhoseStepWaitsManyAreMade) {
  Masks masks;
  for (int i = 0; i < 8; ++i) masks.add(0.02);
  for (int i = 0; i < 3; ++i) {
    EXPECT_NEAR(masks.step(std::nullopt), 0.16, 1e-9);
    EXPECT_EQ(masks.waiting(), 0u);
  }
}

TEST(MaskPace, ARequestThatComesWaitsNotForAllOfThem) {
  Masks masks;
  for (int i = 0; i < 32; ++i) masks.add(0.02);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(masks.step(std::nullopt), 0.25 + 0.02);
  for (int i = 0; i < 32; ++i) EXPECT_GT(masks.made(i), 300) << i;
  const std::int64_t dear = masks.add(3);
  for (int i = 0; i < 100; ++i) masks.step(std::nullopt);
  EXPECT_GE(masks.made(dear), 1);
}

TEST(MaskPace, OneAtLeastIsMadeWhereNoStepWasComputed) {
  Masks masks;
  for (int i = 0; i < 8; ++i) masks.add(0.1);
  for (int i = 1; i <= 4; ++i) {
    masks.step(0);
    EXPECT_EQ(masks.waiting(), 7u);
  }
}

}  // namespace
}  // namespace strata
