#include "engine/pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace strata {
namespace {

using ::testing::ElementsAre;

const std::vector<std::vector<float>> kRows = {{3, 0, 4}, {0, 0, 2}, {-6, 3, 0}};

Result<std::vector<std::vector<float>>> pool(Pooling pooling, bool normalize) {
  Pooler pooler(pooling);
  for (const Position p : pooled_positions(pooling, 3))
    pooler.add(kRows[static_cast<std::size_t>(p)]);
  return pooler.finish(normalize);
}

TEST(Pooling, TakesWhatItsNameSays) {
  EXPECT_THAT(*pool(Pooling::kMean, false), ElementsAre(ElementsAre(-1, 1, 2)));
  EXPECT_THAT(*pool(Pooling::kFirst, false), ElementsAre(ElementsAre(3, 0, 4)));
  EXPECT_THAT(*pool(Pooling::kLast, false), ElementsAre(ElementsAre(-6, 3, 0)));
  EXPECT_THAT(*pool(Pooling::kRank, false), ElementsAre(ElementsAre(3, 0, 4)));
  EXPECT_EQ(*pool(Pooling::kNone, false), kRows);
}

TEST(Pooling, NormalisesEveryRow) {
  EXPECT_THAT(*pool(Pooling::kFirst, true), ElementsAre(ElementsAre(0.6f, 0, 0.8f)));
  EXPECT_THAT((*pool(Pooling::kNone, true))[1], ElementsAre(0, 0, 1));
}

TEST(Pooling, RefusesWhatIsNoVector) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const std::vector<float>& row : {std::vector<float>{0, 0}, {1, infinity}}) {
    Pooler pooler(Pooling::kLast);
    pooler.add(row);
    EXPECT_FALSE(pooler.finish(true).ok());
  }
  EXPECT_FALSE(Pooler(Pooling::kMean).finish(false).ok());
}

TEST(Pooling, NamesReadBack) {
  for (const Pooling pooling : {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast})
    EXPECT_EQ(pooling_by_name(to_string(pooling)), pooling);
  EXPECT_EQ(pooling_by_name("rank"), std::nullopt);
}

}  // namespace
}  // namespace strata
