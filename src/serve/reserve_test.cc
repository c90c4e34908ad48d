#include "serve/reserve.h"

#include <gtest/gtest.h>

namespace strata::serve {
namespace {

TEST(Reserve, IsASmallShareOfSmallBudgets) {
  for (const Bytes budget : {64 * kMiB, 600 * kMiB, kGiB, 2 * kGiB, 64 * kGiB}) {
    const Reserve reserve(budget, 2);
    EXPECT_LE(reserve.requests() + reserve.grammars(), budget / 8) << budget;
    EXPECT_LE(reserve.requests() + reserve.grammars(), 256 * kMiB);
    EXPECT_LE(reserve.body(), reserve.bodies());
    const jinja::RenderLimits limits = reserve.rendering(), usual;
    EXPECT_LE(limits.memory_bytes, usual.memory_bytes);
    EXPECT_LE(limits.memory_bytes + limits.text_bytes + reserve.body(),
              (reserve.requests() - reserve.bodies()) / 2);
  }
}

TEST(Reserve, LeavesRoomForLongPromptsOfSmallModels) {
  const Reserve reserve(600 * kMiB);
  EXPECT_GT(reserve.body(), 4 * kMiB);
  EXPECT_GT(reserve.rendering().text_bytes, kMiB);
  EXPECT_GT(reserve.rendering().memory_bytes, 8 * kMiB);
}

}  // namespace
}  // namespace strata::serve
