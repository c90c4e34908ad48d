#include "base/memory_ledger.h"

#include <gtest/gtest.h>

namespace strata {
namespace {

TEST(MemoryLedger, RefusesBeyondTheBudgetAndNamesTheHolders) {
  MemoryLedger ledger(100 * kMiB);
  auto weights = ledger.reserve("weights", 60 * kMiB);
  ASSERT_TRUE(weights.ok());
  const auto cache = ledger.reserve("cache", 41 * kMiB);
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), StatusCode::kResourceExhausted);
  EXPECT_NE(cache.status().message().find("weights 60.0 MiB"), std::string::npos);
  EXPECT_TRUE(ledger.reserve("cache", 40 * kMiB).ok());
}

TEST(MemoryLedger, ReleasesWithTheReservation) {
  MemoryLedger ledger(10);
  {
    auto first = ledger.reserve("a", 10);
    ASSERT_TRUE(first.ok());
    MemoryLedger::Reservation moved = std::move(first).value();
    EXPECT_EQ(ledger.used(), 10u);
  }
  EXPECT_EQ(ledger.used(), 0u);
  EXPECT_TRUE(ledger.by_owner().empty());
}

TEST(MemoryLedger, RefusesSizesThatWouldWrapAround) {
  MemoryLedger ledger(10);
  auto held = ledger.reserve("a", 5);
  EXPECT_FALSE(ledger.reserve("b", ~Bytes{0}).ok());
}

}  // namespace
}  // namespace strata
